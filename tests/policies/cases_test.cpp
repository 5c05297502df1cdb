// Faults that operators of comparable gateways reported, as far as the Dispatcher alone decides them. The cases over
// real sockets are in tests/integration, under the same numbers.
#include <gtest/gtest.h>

#include <array>
#include <queue>

#include "policies/history.hpp"

namespace headgate::policies {
namespace {

// The only upstream answers 429 and advises 7 s: the answer goes out at once; a request at 1 s is refused with what is
// left of the 7 s; one at 7.5 s reaches it.
TEST(Rw08, AllCoolingIsAnsweredWithTheTimeLeft) {
  History h(PlanOf{}.pool(1).route({0}));
  const auto first = h.arrive(0s);
  h.end(0s, first, status(429, 7s));
  EXPECT_EQ(h.code(first), Code::as_received);
  EXPECT_FALSE(h.servable(0));
  const auto second = h.arrive(1s);
  ASSERT_EQ(h.code(second), Code::no_healthy_backend);
  EXPECT_EQ(h.of(second).answer->retry_after, Nanos{6s});
  EXPECT_TRUE(h.of(second).answer->repeat_ok);
  EXPECT_EQ(h.starts_at(0), 1u);
  const auto third = h.arrive(7500ms);
  EXPECT_TRUE(h.runs(third));
  h.end(8s, third, ok());
  h.expect_idle();
}

// Retries on connect failure only: a refused port fails over; a delivered request does not, and the 500 goes out as it
// came. With the rule widened the silent close causes exactly one more attempt.
TEST(Rw09, WhatWasDeliveredIsSentAgainOnlyIfAllowed) {
  const auto plan = [](bool after_delivery) {
    return PlanOf{}.pool(1, 16).pool(1, 16).route({0, 1}).with([&](Plan& p) {
      p.routes[0].retry.attempts_max = 2;
      p.routes[0].retry.after_delivery = after_delivery;
    });
  };
  History h(plan(false));
  const auto a = h.arrive(0s);
  h.end(0s, a, failed(End::connect));
  EXPECT_EQ(h.endpoint(a), 1u);
  h.end(0s, a, ok());
  const auto b = h.arrive(1s);
  h.end(1s, b, failed(End::sent_no_answer));
  EXPECT_EQ(h.code(b), Code::upstream_failed);
  const auto c = h.arrive(2s);
  h.end(2s, c, status(500));
  EXPECT_EQ(h.code(c), Code::as_received);
  EXPECT_EQ(h.starts_at(1), 1u);
  h.expect_idle();

  History wide(plan(true));
  const auto again = wide.arrive(0s);
  wide.end(0s, again, failed(End::sent_no_answer));
  ASSERT_TRUE(wide.runs(again));
  wide.end(0s, again, ok());
  EXPECT_EQ(wide.starts_at(1), 1u);
  EXPECT_EQ(wide.of(again).starts.size(), 2u);
  wide.expect_idle();
}

// A breaker that opens after 3 failures; ten callers' 400 and ten 422, then a good one: 21 arrivals, no failure
// counted.
TEST(Rw10, CallersMistakesLeaveTheBreakerClosed) {
  History h(PlanOf{}.pool(2).route({0}).with([](Plan& p) {
    for (EndpointPlan& e : p.endpoints) e.health.consecutive_failures = 3;
  }));
  for (int i = 0; i < 20; ++i) {
    const auto r = h.arrive(0s);
    h.end(0s, r, {.end = End::ok, .status = static_cast<std::uint16_t>(i < 10 ? 400 : 422)});
    EXPECT_EQ(h.of(r).starts.size(), 1u);
  }
  h.end(0s, h.arrive(0s), ok());
  EXPECT_EQ(h.starts_at(0) + h.starts_at(1), 21u);
  for (std::uint32_t e = 0; e < 2; ++e) {
    EXPECT_EQ(h.state(e).health, HealthState::up);
    EXPECT_EQ(h.state(e).failures_total, 0u);
    EXPECT_EQ(h.state(e).health_changes_total, 0u);
  }
  h.expect_idle();
}

// Three upstreams whose probes hang while they work; six requests of 2 s kept running for 30 s: no refusal, and each
// has at least a fifth of the traffic.
TEST(Rw12, BusyServersThatMissTheirProbesStayIn) {
  History h(PlanOf{}.pool(3).route({0}).with([](Plan& p) {
    for (EndpointPlan& e : p.endpoints) e.health.probe_interval = 1s;
  }));
  std::vector<RequestId> running;
  for (int i = 0; i < 6; ++i) running.push_back(h.arrive(0s));
  for (Nanos now = 1s; now <= 30s; now += 1s) {
    for (std::uint32_t e = 0; e < 3; ++e) h.probe(now, e, h.state(e).in_flight == 0);
    if (now % 2s != Nanos{0}) continue;
    for (RequestId& r : running) {
      h.end(now, r, ok());
      r = h.arrive(now);
      ASSERT_TRUE(h.runs(r));
    }
  }
  for (const RequestId r : running) h.end(31s, r, ok());
  const std::uint32_t total = h.starts_at(0) + h.starts_at(1) + h.starts_at(2);
  for (std::uint32_t e = 0; e < 3; ++e) {
    EXPECT_GE(h.starts_at(e) * 5, total);
    EXPECT_GE(h.state(e).probe_failures_total, 10u);
    EXPECT_EQ(h.state(e).health_changes_total, 0u);
  }
  h.expect_idle();
}

// Probes alternate for 20: no change. Three misses: one change out, at the third. Two hits: one change in.
TEST(Rw13, OneMissedProbeFlipsNothing) {
  History h(PlanOf{}.pool(2).route({0}));
  Nanos now = 0s;
  for (int i = 0; i < 20; ++i) h.probe(now += 1s, 0, i % 2 == 0);
  EXPECT_EQ(h.state(0).health_changes_total, 0u);
  h.probe(now += 1s, 0, true);
  h.probe(now += 1s, 0, false);
  h.probe(now += 1s, 0, false);
  EXPECT_EQ(h.state(0).health_changes_total, 0u);
  h.probe(now += 1s, 0, false);
  EXPECT_EQ(h.state(0).health_changes_total, 1u);
  EXPECT_EQ(h.state(0).health, HealthState::down);
  h.probe(now += 1s, 0, true);
  EXPECT_EQ(h.state(0).health_changes_total, 1u);
  h.probe(now += 1s, 0, true);
  EXPECT_EQ(h.state(0).health_changes_total, 2u);
  EXPECT_EQ(h.state(0).health, HealthState::up);
}

// 40 requests at once over four idle upstreams, twenty times: ten each.
TEST(Rw16, ABurstIsCountedAtTheChoice) {
  for (const Balance balance : {Balance::least_in_flight, Balance::round_robin, Balance::weighted}) {
    History h(PlanOf{}.pool(4, 16, balance).route({0}));
    Nanos now = 0s;
    for (int round = 0; round < 20; ++round, now += 10s) {
      std::vector<RequestId> burst;
      for (int i = 0; i < 40; ++i) burst.push_back(h.arrive(now));
      for (std::uint32_t e = 0; e < 4; ++e) EXPECT_EQ(h.state(e).in_flight, 10u);
      for (const RequestId r : burst) h.end(now + 1s, r, ok());
      h.forget_finished();
    }
    h.expect_idle();
  }
}

// Deadline 1 s. (a) One unit, held for 3 s: who waits behind it leaves at its deadline and never reaches the upstream.
TEST(Rw20, QueueingCountsAgainstTheDeadline) {
  History h(PlanOf{}.pool(1, 1).route({0}));
  const auto a = h.arrive(0s), b = h.arrive(100ms, {.deadline = Time{} + 1s});
  h.pass_until(3s);
  ASSERT_EQ(h.code(b), Code::deadline_exceeded);
  EXPECT_EQ(h.of(b).answered_at, at(1100ms));
  h.end(3s, a, ok());
  h.pass_until(5s);
  EXPECT_EQ(h.starts_at(0), 1u);
  h.expect_idle();
}

// (b) No queue, ten retries, a 503 after 0.4 s each time; (c) the same, but the upstream hangs. Cooling backends may be
// tried here, so that the deadline alone ends it.
TEST(Rw20, RetryingCountsAgainstTheDeadline) {
  const PlanOf of = PlanOf{}.pool(1).route({0}).with([](Plan& p) {
    p.pools[0].queue.requests_max = 0;
    p.routes[0].retry.attempts_max = 11;
    p.endpoints[0].health.cooldown_last_backend = LastCooling::attempt;
  });
  History b(of);
  const auto r = b.arrive(0s, {.deadline = Time{} + 1s});
  for (Nanos now = 0s; now <= 1150ms; now += 1ms) {
    b.pass_until(now);
    if (!b.runs(r)) continue;
    const Start& start = b.of(r).starts.back();
    EXPECT_EQ(start.end_by, at(1s));
    // The host ends an attempt at its deadline.
    if (at(now) == start.end_by) {
      b.end(now, r, failed(End::out_of_time));
    } else if (now % 400ms == Nanos{0} && now > 0s) {
      b.end(now, r, status(503));
    }
  }
  EXPECT_TRUE(b.code(r) == Code::upstream_timeout || b.code(r) == Code::as_received);
  EXPECT_LE(b.starts_at(0), 3u);
  b.expect_idle();

  History c(of);
  const auto hung = c.arrive(0s, {.deadline = Time{} + 1s});
  EXPECT_EQ(c.of(hung).starts[0].end_by, at(1s));
  c.end(1s, hung, failed(End::out_of_time));
  EXPECT_EQ(c.code(hung), Code::upstream_timeout);
  EXPECT_EQ(c.starts_at(0), 1u);
  c.expect_idle();
}

// As shipped (a cooling backend is not tried): the 503 goes out at once, and nobody is asked again.
TEST(Rw20, ALastBackendThatCoolsIsNotRetried) {
  History h(PlanOf{}.pool(1).route({0}).with([](Plan& p) { p.routes[0].retry.attempts_max = 11; }));
  const auto r = h.arrive(0s, {.deadline = Time{} + 1s});
  h.end(400ms, r, status(503));
  EXPECT_EQ(h.code(r), Code::as_received);
  EXPECT_EQ(h.starts_at(0), 1u);
  h.expect_idle();
}

// Four backends of 16 units at 60 % load, one killed: nobody fails before the first token, and within a second the dead
// one gets less than a twentieth of the new attempts.
TEST(DeadBackend, CostsNoRequestAndSoonGetsNoAttempts) {
  History h(PlanOf{}.pool(4).route({0}));
  constexpr Nanos killed = 10s;
  std::map<RequestId, Nanos> ends;  // of the attempt out
  std::uint32_t attempts = 0, at_dead = 0;
  const auto look = [&] {
    for (const auto& [id, seen] : h.all()) {
      if (!seen.out || ends.count(id) != 0) continue;
      const bool dead = h.endpoint(id) == 0 && h.now() >= killed;
      ends[id] = h.now() + (dead ? Nanos{1ms} : Nanos{1s});
      if (h.now() < killed + 1s) continue;
      ++attempts;
      at_dead += static_cast<std::uint32_t>(dead);
    }
  };
  for (Nanos now = 0s; now < 20s; now += 1ms) {
    h.pass_until(now);
    if (now % 25ms == Nanos{0}) h.arrive(now);  // 40 a second of 1 s each: 40 of 64 units
    look();
    for (const auto& [id, seen] : h.all()) {
      const auto due = ends.find(id);
      if (due == ends.end()) continue;
      const bool dies = h.endpoint(id) == 0 && now >= killed;
      if (due->second > now && !(dies && now == killed)) continue;
      const bool delivered = seen.starts.back().connect_by < at(killed + 2s);
      ends.erase(due);
      h.end(now, id, !dies ? ok() : failed(delivered ? End::sent_no_answer : End::connect));
      look();
    }
    for (const auto& [id, seen] : h.all()) ASSERT_FALSE(seen.answer) << "a request failed";
    h.forget_finished();
  }
  EXPECT_GT(attempts, 300u);
  EXPECT_LT(at_dead * 20, attempts);
  EXPECT_GT(h.state(0).failures_total, 5u);
}

}  // namespace
}  // namespace headgate::policies
