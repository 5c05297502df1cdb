// Stories in virtual time. history.hpp checks the books after every call; each story says what it is about.
#include "policies/dispatcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/history.hpp"

namespace headgate::policies {
namespace {

Arrival within(Nanos deadline) { return {.deadline = Time{} + deadline}; }

TEST(Dispatcher, StartsAtOnceWithTheLimitsOfTheRoute) {
  History h(PlanOf{}.pool(1).route({0}).with([](Plan& p) { p.routes[0].timeouts.first_byte = 10s; }));
  Arrival arrival = stream();
  arrival.head_within = 4s;
  arrival.idle_within = 3s;
  const auto r = h.arrive(0s, arrival);
  const Start& start = h.of(r).starts.at(0);
  EXPECT_EQ(start.why, Why::first);
  EXPECT_EQ(start.attempt.n, 1);
  EXPECT_EQ(start.connect_by, at(2s));
  EXPECT_EQ(start.first_byte_by, at(4s));
  EXPECT_EQ(start.first_token_by, at(60s));
  EXPECT_EQ(start.end_by, at(3600s));
  EXPECT_EQ(start.idle, Nanos{3s});
  h.first_token(1s, r);
  h.end(2s, r, ok());
  const auto unary = h.arrive(2s, within(1s));
  EXPECT_EQ(h.of(unary).starts.at(0).end_by, at(3s));
  EXPECT_EQ(h.of(unary).starts.at(0).connect_by, at(3s));
  EXPECT_EQ(h.of(unary).starts.at(0).idle, Nanos{30s});
  h.end(3s, unary, ok());
  h.expect_idle();
}

TEST(Dispatcher, UnknownRouteIsModelNotFound) {
  History h(PlanOf{}.pool(1).route({0}));
  EXPECT_EQ(h.code(h.arrive(0s, {.route = RouteId{7}})), Code::model_not_found);
  h.expect_idle();
}

TEST(Dispatcher, WaitsForAFreeUnitInOrder) {
  History h(PlanOf{}.pool(1, 1).route({0}));
  const auto a = h.arrive(0s), b = h.arrive(0s, {.body_bytes = 70}), c = h.arrive(0s, {.body_bytes = 30});
  EXPECT_TRUE(h.waits(b));
  EXPECT_EQ(h.pool(0).queued, 2u);
  EXPECT_EQ(h.pool(0).queued_bytes, 100u);
  h.end(1s, a, ok());
  EXPECT_TRUE(h.runs(b));
  EXPECT_EQ(h.of(b).starts[0].why, Why::queued);
  EXPECT_TRUE(h.waits(c));
  h.end(2s, b, ok());
  h.end(3s, c, ok());
  h.expect_idle();
}

TEST(Dispatcher, RefusesWhenTheQueueIsFullByCountOrBytes) {
  History h(
      PlanOf{}.pool(1, 1).route({0}).with([](Plan& p) { p.pools[0].queue = {.requests_max = 2, .bytes_max = 100}; }));
  const auto a = h.arrive(0s), b = h.arrive(0s, {.body_bytes = 60});
  const auto heavy = h.arrive(0s, {.body_bytes = 41});
  ASSERT_EQ(h.code(heavy), Code::queue_full);
  EXPECT_EQ(h.of(heavy).answer->value, 101);
  EXPECT_EQ(h.of(heavy).answer->limit, 100);
  EXPECT_TRUE(h.of(heavy).answer->repeat_ok);
  const auto c = h.arrive(0s, {.body_bytes = 40});
  const auto third = h.arrive(0s, {.repeat = true});
  ASSERT_EQ(h.code(third), Code::queue_full);
  EXPECT_EQ(h.of(third).answer->value, 2);
  EXPECT_EQ(h.of(third).answer->limit, 2);
  EXPECT_FALSE(h.of(third).answer->repeat_ok);
  EXPECT_GE(h.of(third).answer->retry_after, Nanos{1s});
  EXPECT_LE(h.of(third).answer->retry_after, Nanos{1500ms});
  for (const auto r : {a, b, c}) h.end(1s, r, ok());
  h.expect_idle();
}

TEST(Dispatcher, ACallerWhoLeavesTheQueueTakesNothing) {
  History h(PlanOf{}.pool(1, 1).route({0}));
  const auto a = h.arrive(0s), b = h.arrive(0s), c = h.arrive(0s);
  h.leave(1s, b);
  h.leave(1s, b);
  EXPECT_EQ(h.pool(0).queued, 1u);
  h.leave(2s, a);
  EXPECT_EQ(h.state(0).in_flight, 1u);  // until the attempt has ended
  EXPECT_TRUE(h.waits(c));
  h.end(3s, a, failed(End::cancelled));
  EXPECT_TRUE(h.runs(c));
  h.leave(3s, c);
  h.end(4s, c, failed(End::connect));  // never tried again for nobody
  EXPECT_EQ(h.starts_at(0), 2u);
  h.expect_idle();
}

TEST(Dispatcher, LeavesTheQueueAtItsDeadlineOrTheQueuesLimit) {
  History h(PlanOf{}.pool(1, 1).route({0}));
  const auto a = h.arrive(0s), b = h.arrive(1s, within(10s)), c = h.arrive(1s);
  h.pass_until(10999ms);
  EXPECT_TRUE(h.waits(b));
  h.pass_until(11s);
  ASSERT_EQ(h.code(b), Code::deadline_exceeded);
  EXPECT_EQ(h.of(b).answer->value, 10000);
  EXPECT_EQ(h.of(b).answer->limit, 10000);
  h.pass_until(31s);
  ASSERT_EQ(h.code(c), Code::deadline_exceeded);
  EXPECT_EQ(h.of(c).answer->limit, 30000);
  h.end(32s, a, ok());
  h.expect_idle();
}

TEST(Dispatcher, AnExpiredTicketIsNotStartedByALateTick) {
  History h(PlanOf{}.pool(1, 1).route({0}));
  const auto a = h.arrive(0s), b = h.arrive(0s, within(1s));
  h.end(5s, a, ok());
  EXPECT_EQ(h.code(b), Code::deadline_exceeded);
  EXPECT_EQ(h.starts_at(0), 1u);
  EXPECT_EQ(h.code(h.arrive(6s, within(0s))), Code::deadline_exceeded);
  h.expect_idle();
}

// 20 requests have shown that a unit is held for 1 s; two units drain 2 a second, right after two releases 2.5.
TEST(Dispatcher, RefusesWhatCannotBeServedInTime) {
  History h(PlanOf{}.pool(1, 2).route({0}));
  Nanos now = 0s;
  for (int i = 0; i < 10; ++i, now += 1s) {
    const auto a = h.arrive(now), b = h.arrive(now);
    h.end(now + 1s, a, ok());
    h.end(now + 1s, b, ok());
  }
  std::vector<RequestId> running{h.arrive(now), h.arrive(now)};
  const auto fits = h.arrive(now, within(2100ms));  // 0.4 s of waiting and 1 s of work in 1.47 s
  EXPECT_TRUE(h.waits(fits));
  const auto late = h.arrive(now, within(2100ms));  // 0.8 s and 1 s
  ASSERT_EQ(h.code(late), Code::deadline_unmeetable);
  EXPECT_NEAR(static_cast<double>(h.of(late).answer->value), 1787, 20);
  EXPECT_EQ(h.of(late).answer->limit, 2100);
  EXPECT_GE(h.of(late).answer->retry_after, Nanos{300ms});
  EXPECT_LE(h.of(late).answer->retry_after, Nanos{500ms});
  EXPECT_TRUE(h.of(late).answer->repeat_ok);
  // New ones, 2.5 a second too, come before a repeat.
  const auto repeat = h.arrive(now, {.repeat = true, .deadline = Time{} + 10s});
  EXPECT_EQ(h.code(repeat), Code::deadline_unmeetable);
  EXPECT_FALSE(h.of(repeat).answer->repeat_ok);
  const auto patient = h.arrive(now);
  EXPECT_TRUE(h.waits(patient));
  for (const auto r : {running[0], running[1], fits, patient}) h.end(now + 1s, r, ok());
  h.expect_idle();
}

TEST(Dispatcher, SpillsToTheNextPoolWhenNoUnitIsFree) {
  History h(PlanOf{}.pool(1, 1).pool(1, 1).route({0, 1}));
  const auto a = h.arrive(0s), b = h.arrive(0s), c = h.arrive(0s);
  EXPECT_EQ(h.endpoint(a), 0u);
  EXPECT_EQ(h.endpoint(b), 1u);
  EXPECT_EQ(h.pool(0).queued, 1u);  // one ticket, in both queues
  EXPECT_EQ(h.pool(1).queued, 1u);
  h.end(1s, b, ok());
  EXPECT_EQ(h.endpoint(c), 1u);
  EXPECT_EQ(h.pool(0).queued, 0u);
  h.end(1s, a, ok());
  h.end(1s, c, ok());
  h.expect_idle();
}

TEST(Dispatcher, WithALatencyBudgetSpillsOnlyWhenTheWaitBreaksIt) {
  History h(PlanOf{}.pool(1, 2).pool(1, 8).route({0, 1}).with([](Plan& p) { p.routes[0].budget.ttft = 700ms; }));
  Nanos now = 0s;
  for (int i = 0; i < 10; ++i, now += 1s) {
    const auto a = h.arrive(now), b = h.arrive(now);
    h.end(now + 1s, a, ok());
    h.end(now + 1s, b, ok());
  }
  const auto a = h.arrive(now), b = h.arrive(now);
  const auto c = h.arrive(now);  // predicted 0.4 s: waits for the first pool
  EXPECT_TRUE(h.waits(c));
  EXPECT_EQ(h.pool(1).queued, 0u);
  const auto d = h.arrive(now);  // predicted 0.8 s: the second pool
  EXPECT_EQ(h.endpoint(d), 1u);
  h.pass_until(now + 489ms);
  EXPECT_TRUE(h.waits(c));
  h.pass_until(now + 490ms);  // the prediction was wrong: seven tenths of its budget are used up
  EXPECT_EQ(h.endpoint(c), 1u);
  for (const auto r : {a, b, c, d}) h.end(now + 1s, r, ok());
  h.expect_idle();
}

TEST(Dispatcher, WithALatencyBudgetLeavesAPoolThatHasNobody) {
  History h(PlanOf{}.pool(1, 1).pool(1, 8).route({0, 1}).with([](Plan& p) { p.routes[0].budget.ttft = 10s; }));
  const auto a = h.arrive(0s), b = h.arrive(0s);
  EXPECT_TRUE(h.waits(b));
  for (int i = 0; i < 3; ++i) h.probe(1s, 0, false);
  EXPECT_EQ(h.endpoint(b), 1u);
  const auto c = h.arrive(1s);
  EXPECT_EQ(h.endpoint(c), 1u);
  for (const auto r : {a, b, c}) h.end(2s, r, ok());
  h.expect_idle();
}

TEST(Dispatcher, AFreedEndpointServesItsPoolsInTurn) {
  History h(PlanOf{}.pool(1, 1).shared_pool({0}).route({0}).route({1}));
  const auto first = h.arrive(0s);
  std::vector<RequestId> left, right;
  for (int i = 0; i < 4; ++i) left.push_back(h.arrive(0s, {.route = RouteId{0}}));
  for (int i = 0; i < 4; ++i) right.push_back(h.arrive(0s, {.route = RouteId{1}}));
  h.end(1s, first, ok());
  std::string turns;
  for (int round = 0; round < 8; ++round) {
    RequestId running{};
    for (const auto& [id, seen] : h.all()) running = seen.out ? id : running;
    turns += std::ranges::find(left, running) != left.end() ? 'l' : 'r';
    h.end(1s, running, ok());
  }
  EXPECT_TRUE(turns == "lrlrlrlr" || turns == "rlrlrlrl") << turns;
  h.expect_idle();
}

TEST(Dispatcher, StaleIdsChangeNothing) {
  History h(PlanOf{}.pool(2, 1).route({0}));
  const auto a = h.arrive(0s);
  const AttemptId old = h.of(a).starts[0].attempt;
  h.end(1s, a, status(500));
  h.stale_end(1s, old);  // the second attempt is out
  EXPECT_TRUE(h.runs(a));
  h.end(2s, a, ok());
  const auto b = h.arrive(2s);  // the same slot
  h.stale_end(2s, old);
  h.stale_end(2s, {a, 2});
  h.stale_end(2s, {RequestId{~0ull}, 1});
  h.stale_end(2s, {RequestId::none, 1});
  h.leave(2s, a);
  EXPECT_TRUE(h.runs(b));
  h.end(3s, b, ok());
  h.expect_idle();
}

TEST(Dispatcher, AReloadKeepsLoadHealthCreditAndWhoWaits) {
  PlanOf of = PlanOf{}.pool(2, 2).route({0});
  History h(of);
  std::vector<RequestId> all;
  for (int i = 0; i < 5; ++i) all.push_back(h.arrive(0s));
  h.end(1s, all[0], status(429, 20s));  // fails over into the queue, behind nobody
  const auto cool = h.of(all[0]).starts[0].endpoint;
  h.replan(2s, of.plan);
  EXPECT_EQ(h.state(static_cast<std::uint32_t>(index(cool))).health, HealthState::cooling);
  EXPECT_EQ(h.snapshot().waiting, 2u);
  EXPECT_DOUBLE_EQ(h.snapshot().routes[0].retry_credit, 9);
  of.plan.endpoints[1 - index(cool)].max_in_flight = 4;
  h.replan(3s, of.plan);
  for (const auto r : all) EXPECT_TRUE(h.runs(r));
  for (const auto r : all) h.end(4s, r, ok());
  h.expect_idle();
}

TEST(Dispatcher, RemovedEndpointsDrainAndComeBackWithTheirCount) {
  PlanOf of = PlanOf{}.pool(2, 2).route({0});
  History h(of);
  std::vector<RequestId> all;
  for (int i = 0; i < 4; ++i) all.push_back(h.arrive(0s));
  Plan without = of.plan;
  without.endpoints.erase(without.endpoints.begin());
  without.pools[0].backends.erase(without.pools[0].backends.begin());
  h.replan(1s, without);
  EXPECT_FALSE(h.state(0).planned);
  EXPECT_EQ(h.state(0).in_flight, 2u);
  const auto waiting = h.arrive(1s);
  EXPECT_TRUE(h.waits(waiting));
  h.replan(2s, of.plan);
  EXPECT_TRUE(h.waits(waiting));  // both of its units are still out
  h.replan(3s, without);
  const auto on0 = *std::ranges::find_if(all, [&](auto r) { return h.endpoint(r) == 0; });
  h.end(4s, on0, ok());
  EXPECT_TRUE(h.waits(waiting));
  h.replan(5s, of.plan);
  EXPECT_EQ(h.endpoint(waiting), 0u);
  for (const auto r : all) {
    if (r != on0) h.end(6s, r, ok());
  }
  h.end(6s, waiting, ok());
  h.replan(7s, without);
  EXPECT_EQ(h.snapshot().endpoints.size(), 1u);
  h.expect_idle();
}

TEST(Dispatcher, ARouteThatLeftServesOutWhomItLetInWhileAPoolOfItStays) {
  PlanOf of = PlanOf{}.pool(1, 1).pool(1, 1).route({0, 1}).route({0});
  History h(of);
  const auto a = h.arrive(0s), b = h.arrive(0s), c = h.arrive(0s);
  Plan next = of.plan;
  next.routes.erase(next.routes.begin());
  h.replan(1s, next);
  h.end(2s, a, status(500));  // fails over to the other pool, and c has what it leaves
  h.end(3s, b, ok());
  EXPECT_EQ(h.endpoint(a), 1u);
  EXPECT_EQ(h.endpoint(c), 0u);
  const auto d = h.arrive(3s);  // by a worker that has not heard of the new plan
  next.pools.pop_back();
  next.endpoints.pop_back();
  h.replan(4s, next);
  h.replan(5s, Plan{});  // with the last of its pools it is gone
  EXPECT_EQ(h.code(d), Code::model_not_found);
  h.end(6s, a, ok());
  h.end(6s, c, ok());
  h.expect_idle();
}

TEST(Dispatcher, WhoWaitsMovesToTheNewPoolsOrIsToldThatTheModelIsGone) {
  PlanOf of = PlanOf{}.pool(1, 1).pool(1, 1).route({0}).route({0});
  History h(of);
  const auto a = h.arrive(0s), b = h.arrive(0s), c = h.arrive(0s, {.route = RouteId{1}});
  Plan next = of.plan;
  next.routes[0].pools = {PoolId{1}};
  next.routes.pop_back();
  h.replan(1s, next);
  EXPECT_EQ(h.endpoint(b), 1u);
  h.replan(2s, Plan{});
  EXPECT_EQ(h.code(c), Code::model_not_found);
  h.end(3s, a, status(500));
  EXPECT_EQ(h.code(a), Code::as_received);
  h.end(3s, b, ok());
  h.expect_idle();
}

TEST(Dispatcher, ALowerLimitStopsNothingAndStartsNothing) {
  PlanOf of = PlanOf{}.pool(1, 4).route({0});
  History h(of);
  std::vector<RequestId> all;
  for (int i = 0; i < 5; ++i) all.push_back(h.arrive(0s));
  of.plan.endpoints[0].max_in_flight = 2;
  h.replan(1s, of.plan);
  EXPECT_EQ(h.state(0).in_flight, 4u);
  h.end(2s, all[0], ok());
  h.end(2s, all[1], ok());
  EXPECT_TRUE(h.waits(all[4]));
  h.end(2s, all[2], ok());
  EXPECT_TRUE(h.runs(all[4]));
  h.end(3s, all[3], ok());
  h.end(3s, all[4], ok());
  h.expect_idle();
}

}  // namespace
}  // namespace headgate::policies
