// Seeded random histories: every kind of call in any state, stale and foreign ids, reloads, callers leaving.
// history.hpp checks the books after every call; at the end everything is ended and must be at zero. A failing seed is
// named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "policies/base/random.hpp"
#include "policies/history.hpp"

namespace headgate::policies {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t below(std::uint32_t bound) { return headgate::below(draw(seed_, 0, ++n_), bound); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  Nanos up_to(Nanos most) {
    return Nanos{static_cast<std::int64_t>(unit(draw(seed_, 1, ++n_)) * static_cast<double>(most.count()))};
  }

 private:
  std::uint64_t seed_, n_ = 0;
};

constexpr std::uint32_t endpoints = 5;

std::uint64_t seeds(std::uint64_t usual) {
  const char* const wanted = std::getenv("HEADGATE_SEEDS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : usual;
}

Plan random_plan(Dice& dice) {
  Plan plan;
  plan.seed = dice.below(1000);
  for (std::uint32_t e = 0; e < endpoints; ++e) {
    if (dice.one_in(5) && e > 0) continue;
    EndpointPlan endpoint{.id = EndpointId{e}, .max_in_flight = 1 + dice.below(3), .health = {}};
    endpoint.health.consecutive_failures = 1 + dice.below(5);
    if (dice.one_in(4)) endpoint.limit.mode = LimitMode::adaptive;
    if (dice.one_in(4)) endpoint.limit.prefill_tokens_max = 1 + dice.below(200);
    if (dice.one_in(3)) endpoint.health.cooldown_last_backend = LastCooling::attempt;
    plan.endpoints.push_back(endpoint);
  }
  const std::uint32_t pools = 1 + dice.below(3);
  for (std::uint32_t p = 0; p < pools; ++p) {
    PoolPlan pool{.id = PoolId{p}, .backends = {}, .balance = static_cast<Balance>(dice.below(4)), .queue = {}};
    pool.queue.requests_max = dice.below(6);
    pool.queue.bytes_max = 300;
    pool.queue.wait_max = dice.up_to(3s);
    for (const EndpointPlan& endpoint : plan.endpoints) {
      if (dice.one_in(3)) continue;
      pool.backends.push_back(
          {BackendId{p * endpoints + static_cast<std::uint32_t>(index(endpoint.id))}, endpoint.id, 1 + dice.below(3)});
    }
    plan.pools.push_back(pool);
  }
  for (std::uint32_t r = 0; r < 2; ++r) {
    if (r == 1 && dice.one_in(3)) continue;
    RoutePlan route{.id = RouteId{r}, .pools = {}, .budget = {}, .timeouts = {}, .retry = {}};
    for (std::uint32_t p = 0; p < pools; ++p) {
      if (p == 0 || !dice.one_in(3)) route.pools.push_back(PoolId{p});
    }
    if (dice.one_in(3)) route.budget.ttft = dice.up_to(500ms);
    route.retry.attempts_max = 1 + dice.below(12);
    route.retry.after_delivery = !dice.one_in(4);
    route.retry.budget_initial = dice.below(4);
    plan.routes.push_back(route);
  }
  return plan;
}

Outcome random_outcome(Dice& dice) {
  if (dice.one_in(2)) return {.end = End::ok, .status = static_cast<std::uint16_t>(dice.one_in(5) ? 400 : 200)};
  Outcome outcome{.end = static_cast<End>(dice.below(13))};
  constexpr std::uint16_t statuses[] = {401, 429, 500, 503, 529, 302};
  outcome.status = statuses[dice.below(6)];
  if (dice.one_in(3)) outcome.retry_after = dice.up_to(2s);
  outcome.overloaded = dice.one_in(2);
  return outcome;
}

void step(History& h, Dice& dice, Nanos now) {
  std::vector<RequestId> running, open;
  for (const auto& [id, seen] : h.all()) {
    if (seen.out) running.push_back(id);
    if (!seen.over) open.push_back(id);
  }
  const auto any_of = [&](const std::vector<RequestId>& list) {
    return list[dice.below(static_cast<std::uint32_t>(list.size()))];
  };
  switch (dice.below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: {
      Arrival arrival{.route = RouteId{dice.below(3)},
                      .body_bytes = dice.below(120),
                      .prompt_tokens = dice.below(100),
                      .stream = dice.one_in(2),
                      .repeat = dice.one_in(4)};
      if (dice.one_in(2)) arrival.deadline = Time{} + dice.up_to(2s);
      if (dice.one_in(4)) arrival.head_within = dice.up_to(1s);
      if (dice.one_in(4)) arrival.content_by = Time{} + dice.up_to(1s);
      h.arrive(now, arrival);
      break;
    }
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
      if (!running.empty()) h.end(now, any_of(running), random_outcome(dice));
      break;
    case 10:
      if (!running.empty()) h.first_token(now, any_of(running));
      break;
    case 11:
      if (!open.empty()) h.leave(now, any_of(open));
      break;
    case 12:
      h.probe(now, dice.below(endpoints + 2), dice.one_in(2));
      break;
    case 13:
      // What is over, or another attempt's number.
      for (const auto& [id, seen] : h.all()) {
        if (!seen.starts.empty() && (seen.over || seen.starts.size() > 1)) {
          h.stale_end(now, seen.starts.front().attempt);
          if (seen.over) h.leave(now, id);
          break;
        }
      }
      break;
    case 14:
      h.tick(now);
      h.progress(now, {{EndpointId{dice.below(endpoints + 2)}, dice.below(300), dice.up_to(10s)}});
      break;
    default:
      if (dice.one_in(6)) h.replan(now, random_plan(dice));
      if (dice.one_in(3))
        h.set_by_hand(now, dice.below(endpoints), {.drained = dice.one_in(2), .weight = dice.below(4)});
      break;
  }
}

void finish(History& h, Nanos now) {
  for (int rounds = 0; rounds < 5000; ++rounds) {
    RequestId open = RequestId::none;
    for (const auto& [id, seen] : h.all()) {
      if (!seen.over && (open == RequestId::none || seen.out)) open = id;
    }
    if (open == RequestId::none) return;
    if (h.runs(open)) {
      h.end(now, open, ok());
    } else {
      h.pass_until(now += 100ms);
    }
  }
  ADD_FAILURE() << "somebody waits for ever";
}

TEST(RandomHistory, KeepsItsBooksAndEndsAtZero) {
  const std::uint64_t last = seeds(2000);
  for (std::uint64_t seed = 1; seed <= last; ++seed) {
    Dice dice(seed);
    History h(random_plan(dice));
    Nanos now = 0s;
    for (int i = 0; i < 120; ++i) {
      now += dice.one_in(3) ? dice.up_to(400ms) : Nanos{0};
      if (dice.one_in(2)) {
        h.pass_until(now);
      }
      step(h, dice, now);
      if (i % 40 == 39) h.forget_finished();
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    finish(h, now);
    h.expect_idle();
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", at the end";
  }
}

// Whoever is turned away unread would have been refused in the same words, however its body went on.
TEST(RandomHistory, TurnsAwayOnlyWhomItWouldRefuse) {
  std::uint32_t turned_away = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Dice dice(seed);
    History h(random_plan(dice));
    Nanos now = 0s;
    for (int i = 0; i < 120; ++i) {
      h.pass_until(now += dice.one_in(3) ? dice.up_to(400ms) : Nanos{0});
      Arrival arrival{.route = RouteId{dice.below(3)}, .body_bytes = dice.below(120), .repeat = dice.one_in(4)};
      if (dice.one_in(2)) arrival.deadline = Time{} + dice.up_to(2s);
      const std::optional<Answer> unread = h.turn_away(now, arrival);
      arrival.stream = dice.one_in(2);
      arrival.prompt_tokens = dice.below(1000);
      const RequestId id = h.arrive(now, arrival);
      const std::optional<Answer> answer = h.of(id).answer;
      refused += static_cast<std::uint32_t>(answer && answer->code == Code::queue_full);
      if (unread) {
        ++turned_away;
        ASSERT_TRUE(answer) << "seed " << seed << ", step " << i;
        EXPECT_EQ(answer->code, unread->code);
        EXPECT_EQ(answer->repeat_ok, unread->repeat_ok);
        EXPECT_EQ(answer->value, unread->value);
        EXPECT_EQ(answer->limit, unread->limit);
      }
      if (dice.one_in(2)) step(h, dice, now);
      if (i % 40 == 39) h.forget_finished();
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
    finish(h, now);
    h.expect_idle();
  }
  EXPECT_GT(turned_away, 1000u);
  EXPECT_GE(refused, turned_away);
  EXPECT_GT(turned_away, refused / 2) << "it hardly ever sees that a queue is full";
}

// Without retries nothing is excluded: while somebody waits, no endpoint of the route that is up has a free unit.
TEST(RandomHistory, LeavesNoUnitFreeWhileSomebodyWaits) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    PlanOf of = PlanOf{}.pool(3, 2).shared_pool({0, 1}).route({0}).route({1, 0}).with([](Plan& p) {
      for (RoutePlan& route : p.routes) route.retry.attempts_max = 1;
      for (EndpointPlan& endpoint : p.endpoints) endpoint.health.consecutive_failures = 2;
    });
    History h(of);
    Nanos now = 0s;
    for (int i = 0; i < 150; ++i) {
      h.pass_until(now += dice.up_to(200ms));
      if (dice.one_in(2)) {
        h.arrive(now, {.route = RouteId{0}});
      } else {
        step(h, dice, now);
        if (dice.one_in(20)) h.replan(now, of.plan);
      }
      const Snapshot snapshot = h.snapshot();
      if (snapshot.pools.size() < 2 || snapshot.pools[0].queued == 0) continue;
      bool planned = true;
      for (const EndpointState& state : snapshot.endpoints) planned = planned && state.planned && index(state.id) < 3;
      if (!planned || snapshot.endpoints.size() != 3 || snapshot.endpoints[2].max_in_flight != 2) continue;
      h.replan(now, of.plan);
      for (const EndpointState& state : h.snapshot().endpoints) {
        if (h.pool(0).queued > 0 && state.health == HealthState::up && !state.drained) {
          EXPECT_GE(state.in_flight, state.max_in_flight) << "seed " << seed << ", step " << i;
        }
      }
    }
    h.replan(now, of.plan);
    finish(h, now);
    h.expect_idle();
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace headgate::policies
