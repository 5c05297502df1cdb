// Stories in virtual time. history.hpp checks the books after every call; each story says what it is about.
#include "policies/dispatcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "policies/history.hpp"

namespace headgate::policies {
namespace {

Arrival stream() { return {.stream = true}; }
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
  const auto fits = h.arrive(now, within(1900ms));  // 0.4 s of waiting and 1 s of work in 1.7 s
  EXPECT_TRUE(h.waits(fits));
  const auto late = h.arrive(now, {.repeat = true, .deadline = Time{} + 1900ms});  // 0.8 s and 1 s
  ASSERT_EQ(h.code(late), Code::deadline_unmeetable);
  EXPECT_NEAR(static_cast<double>(h.of(late).answer->value), 1787, 20);
  EXPECT_EQ(h.of(late).answer->limit, 1900);
  EXPECT_GE(h.of(late).answer->retry_after, Nanos{60ms});
  EXPECT_LE(h.of(late).answer->retry_after, Nanos{140ms});
  EXPECT_FALSE(h.of(late).answer->repeat_ok);
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
  History h(PlanOf{}.pool(1, 2).pool(1, 8).route({0, 1}).with([](Plan& p) { p.routes[0].ttft_budget = 700ms; }));
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
  h.pass_until(now + 699ms);
  EXPECT_TRUE(h.waits(c));
  h.pass_until(now + 700ms);  // the prediction was wrong: its budget is used up
  EXPECT_EQ(h.endpoint(c), 1u);
  for (const auto r : {a, b, c, d}) h.end(now + 1s, r, ok());
  h.expect_idle();
}

TEST(Dispatcher, WithALatencyBudgetLeavesAPoolThatHasNobody) {
  History h(PlanOf{}.pool(1, 1).pool(1, 8).route({0, 1}).with([](Plan& p) { p.routes[0].ttft_budget = 10s; }));
  const auto a = h.arrive(0s), b = h.arrive(0s);
  EXPECT_TRUE(h.waits(b));
  for (int i = 0; i < 3; ++i) h.probe(1s, 0, false);
  EXPECT_EQ(h.endpoint(b), 1u);
  const auto c = h.arrive(1s);
  EXPECT_EQ(h.endpoint(c), 1u);
  for (const auto r : {a, b, c}) h.end(2s, r, ok());
  h.expect_idle();
}

TEST(Dispatcher, FailsOverBeforeTheFirstTokenToAnotherBackend) {
  History h(PlanOf{}.pool(3).route({0}));
  const auto r = h.arrive(0s, stream());
  std::set<std::uint32_t> tried{h.endpoint(r)};
  h.end(10ms, r, status(500));
  EXPECT_EQ(h.of(r).starts.back().why, Why::retry);
  tried.insert(h.endpoint(r));
  h.end(20ms, r, failed(End::sent_no_answer));
  tried.insert(h.endpoint(r));
  EXPECT_EQ(tried.size(), 3u);
  h.end(30ms, r, status(502));
  EXPECT_EQ(h.code(r), Code::as_received);
  EXPECT_EQ(h.of(r).starts.size(), 3u);
  h.expect_idle();
}

TEST(Dispatcher, AfterTheFirstTokenAFailureCutsTheStream) {
  History h(PlanOf{}.pool(2).route({0}));
  const auto r = h.arrive(0s, stream());
  h.first_token(1s, r);
  h.end(2s, r, failed(End::truncated));
  EXPECT_EQ(h.code(r), Code::stream_cut);
  EXPECT_EQ(h.of(r).starts.size(), 1u);
  h.expect_idle();
}

TEST(Dispatcher, TheAnswerFollowsTheLastAttempt) {
  struct Row {
    Outcome outcome;
    Code code;
  };
  const Row rows[] = {{status(500), Code::as_received},
                      {status(401), Code::upstream_auth},
                      {failed(End::connect), Code::upstream_failed},
                      {failed(End::malformed), Code::upstream_failed},
                      {failed(End::first_byte_late), Code::upstream_timeout},
                      {failed(End::out_of_time), Code::upstream_timeout}};
  for (const Row& row : rows) {
    History h(PlanOf{}.pool(2).route({0}).with([](Plan& p) { p.routes[0].retry.attempts_max = 1; }));
    const auto r = h.arrive(0s);
    h.end(1s, r, row.outcome);
    EXPECT_EQ(h.code(r), row.code);
    h.expect_idle();
  }
}

TEST(Dispatcher, OurOwnCredentialsFailOverButNeverToTheSameBackend) {
  History h(PlanOf{}.pool(1).pool(1).route({0, 1}));
  const auto r = h.arrive(0s);
  h.end(1s, r, status(401));
  EXPECT_EQ(h.endpoint(r), 1u);
  h.end(2s, r, status(403));
  EXPECT_EQ(h.code(r), Code::upstream_auth);
  EXPECT_EQ(h.state(0).failures_total, 1u);
  EXPECT_EQ(h.state(0).health, HealthState::up);
  h.expect_idle();
}

TEST(Dispatcher, ALoneBackendIsTriedAgainAfterAPause) {
  History h(PlanOf{}.pool(1).route({0}));
  const auto r = h.arrive(0s);
  h.end(1s, r, status(500));
  EXPECT_TRUE(h.waits(r));
  h.pass_until(1s + 50ms);
  EXPECT_TRUE(h.runs(r));
  h.end(2s, r, status(500));
  h.pass_until(2s + 100ms);
  ASSERT_TRUE(h.runs(r));
  h.end(3s, r, ok());
  h.expect_idle();
}

TEST(Dispatcher, ACallerMayLeaveDuringThePause) {
  History h(PlanOf{}.pool(1).route({0}));
  const auto r = h.arrive(0s);
  h.end(1s, r, status(500));
  h.leave(1s, r);
  h.expect_idle();
  h.pass_until(5s);
  EXPECT_EQ(h.starts_at(0), 1u);
}

TEST(Dispatcher, AnotherBackendTriedLongAgoIsPreferredAfterThePause) {
  History h(PlanOf{}.pool(2).route({0}));
  const auto r = h.arrive(0s);
  const auto first = h.endpoint(r);
  h.end(1s, r, status(500));
  h.end(2s, r, status(500));
  EXPECT_TRUE(h.waits(r));
  h.pass_until(3s);
  EXPECT_EQ(h.endpoint(r), first);
  h.end(3s, r, ok());
  h.expect_idle();
}

TEST(Dispatcher, RetriesStopWhenTheCreditIsUsedUp) {
  History h(PlanOf{}.pool(4, 64).route({0}).with([](Plan& p) {
    p.routes[0].retry.budget_initial = 2;
    p.routes[0].retry.attempts_max = 9;
    for (EndpointPlan& e : p.endpoints) e.health.consecutive_failures = 100;
  }));
  const auto r = h.arrive(0s);
  for (int i = 0; i < 3; ++i) h.end(1s, r, status(500));
  EXPECT_EQ(h.code(r), Code::as_received);
  for (int i = 0; i < 10; ++i) h.end(2s, h.arrive(2s), ok());
  EXPECT_NEAR(h.snapshot().routes[0].retry_credit, 1, 1e-9);
  const auto again = h.arrive(3s);
  h.end(3s, again, status(500));
  EXPECT_TRUE(h.runs(again));
  h.end(3s, again, ok());
  h.expect_idle();
}

TEST(Dispatcher, WhatWasNeverDeliveredIsFreeOnce) {
  History h(PlanOf{}.pool(3).route({0}).with([](Plan& p) { p.routes[0].retry.budget_initial = 0; }));
  const auto r = h.arrive(0s);
  h.end(0s, r, failed(End::unsent));
  EXPECT_TRUE(h.runs(r));
  h.end(0s, r, status(500));
  EXPECT_EQ(h.code(r), Code::as_received);
  h.expect_idle();
}

TEST(Dispatcher, TheDeadEvacuateBeyondTheCreditAndGoFirst) {
  History h(PlanOf{}.pool(2, 8).route({0}).with([](Plan& p) { p.routes[0].retry.budget_initial = 0; }));
  std::vector<RequestId> all;
  for (int i = 0; i < 16; ++i) all.push_back(h.arrive(0s));
  const auto fresh = h.arrive(0s);
  std::vector<RequestId> dead, alive;
  for (const auto r : all) (h.endpoint(r) == 0 ? dead : alive).push_back(r);
  ASSERT_EQ(dead.size(), 8u);
  for (const auto r : dead) h.end(1s, r, failed(End::sent_no_answer));
  // The unit that the first death gave back went to who waited; after five failures the endpoint is out.
  EXPECT_EQ(h.state(0).health, HealthState::ejected);
  for (const auto r : dead) EXPECT_TRUE(h.waits(r));
  if (h.runs(fresh) && h.endpoint(fresh) == 0) h.end(1s, fresh, ok());
  const auto later = h.arrive(2s);
  for (const auto r : alive) h.end(3s, r, ok());
  for (const auto r : dead) {
    ASSERT_TRUE(h.runs(r));
    EXPECT_EQ(h.of(r).starts.back().why, Why::evacuation);
    EXPECT_EQ(h.endpoint(r), 1u);
    EXPECT_TRUE(h.waits(later));
  }
  for (const auto r : dead) h.end(4s, r, ok());
  h.end(5s, later, ok());
  h.expect_idle();
}

TEST(Dispatcher, AWaitingRetryDropsItsExclusionWhenNothingElseIsLeft) {
  History h(PlanOf{}.pool(2, 1).route({0}));
  const auto a = h.arrive(0s), b = h.arrive(0s);
  const auto mine = h.endpoint(a), other = h.endpoint(b);
  h.end(1s, a, status(500));
  EXPECT_TRUE(h.waits(a));  // for the other one, though its own is free
  for (int i = 0; i < 3; ++i) h.probe(2s, other, false);
  EXPECT_TRUE(h.runs(a));
  EXPECT_EQ(h.endpoint(a), mine);
  h.end(3s, a, ok());
  h.end(3s, b, ok());
  h.expect_idle();
}

TEST(Dispatcher, EjectsAtMostHalfOfAPoolAndNeverItsLast) {
  History h(PlanOf{}.pool(4).route({0}).with([](Plan& p) { p.routes[0].retry.attempts_max = 1; }));
  for (int i = 0; i < 200; ++i) h.end(0s, h.arrive(0s), status(500));
  int ejected = 0;
  for (std::uint32_t e = 0; e < 4; ++e) ejected += h.state(e).health == HealthState::ejected;
  EXPECT_EQ(ejected, 2);
  History one(PlanOf{}.pool(1).route({0}).with([](Plan& p) { p.routes[0].retry.attempts_max = 1; }));
  for (int i = 0; i < 20; ++i) one.end(0s, one.arrive(0s), status(500));
  EXPECT_EQ(one.state(0).health, HealthState::up);
  EXPECT_EQ(one.state(0).failures_total, 20u);
}

TEST(Dispatcher, AnEndpointOfSeveralPoolsNeedsTheLeaveOfAll) {
  History h(PlanOf{}.pool(2).shared_pool({0}).route({0}).route({1}).with([](Plan& p) {
    for (RoutePlan& route : p.routes) route.retry.attempts_max = 1;
  }));
  for (int i = 0; i < 20; ++i) h.end(0s, h.arrive(0s, {.route = RouteId{1}}), status(500));
  EXPECT_EQ(h.state(0).health, HealthState::up);
}

TEST(Dispatcher, AfterAnEjectionOneRequestDecides) {
  History h(PlanOf{}.pool(2, 4).route({0}).with([](Plan& p) {
    p.routes[0].retry.attempts_max = 1;
    p.pools[0].balance = Balance::round_robin;
  }));
  while (h.state(0).health == HealthState::up) {
    const auto r = h.arrive(0s);
    h.end(0s, r, h.endpoint(r) == 0 ? status(500) : ok());
  }
  h.pass_until(5s);
  EXPECT_EQ(h.state(0).health, HealthState::half_open);
  std::vector<RequestId> all;
  for (int i = 0; i < 5; ++i) all.push_back(h.arrive(5s));
  EXPECT_EQ(h.state(0).in_flight, 1u);
  const auto waiting = h.arrive(5s);
  EXPECT_TRUE(h.waits(waiting));
  const auto trial = *std::ranges::find_if(all, [&](auto r) { return h.endpoint(r) == 0; });
  h.first_token(6s, trial);  // good enough: the rest is open again
  EXPECT_EQ(h.state(0).health, HealthState::up);
  EXPECT_TRUE(h.runs(waiting));
  for (const auto r : all) h.end(7s, r, ok());
  h.end(7s, waiting, ok());
  EXPECT_EQ(h.state(0).health_changes_total, 2u);
  h.expect_idle();
}

TEST(Dispatcher, WhoWaitsForAHalfOpenRequestThatFailsGoesWhereItMay) {
  History h(PlanOf{}.pool(2, 1).route({0}).with([](Plan& p) {
    p.endpoints[0].health.consecutive_failures = 1;
    p.pools[0].balance = Balance::round_robin;
  }));
  const auto a = h.arrive(0s);
  ASSERT_EQ(h.endpoint(a), 0u);
  h.end(0s, a, status(500));
  h.end(1s, a, ok());
  h.pass_until(5s);
  const auto t = h.arrive(5s), b = h.arrive(5s);
  ASSERT_EQ(h.endpoint(t), 0u);
  h.end(6s, b, status(500));  // alone, for the half-open one is taken
  EXPECT_TRUE(h.waits(b));
  h.end(6s, t, failed(End::out_of_time));
  h.pass_until(7s);
  ASSERT_TRUE(h.runs(b));
  h.end(8s, b, ok());
  h.expect_idle();
}

TEST(Dispatcher, AllDownIsSaidAtOnceWithTheNextProbe) {
  History h(PlanOf{}.pool(2).route({0}));
  for (std::uint32_t e = 0; e < 2; ++e) {
    for (int i = 0; i < 3; ++i) h.probe(1s, e, false);
  }
  EXPECT_FALSE(h.servable(0));
  const auto r = h.arrive(2s);
  ASSERT_EQ(h.code(r), Code::no_healthy_backend);
  EXPECT_EQ(h.of(r).answer->retry_after, Nanos{4s});
  EXPECT_TRUE(h.of(r).answer->repeat_ok);
  const auto repeat = h.arrive(2s, {.repeat = true});
  EXPECT_FALSE(h.of(repeat).answer->repeat_ok);
  for (int i = 0; i < 2; ++i) h.probe(6s, 1, true);
  EXPECT_TRUE(h.servable(0));
  const auto served = h.arrive(6s);
  EXPECT_EQ(h.endpoint(served), 1u);
  h.end(7s, served, ok());
  h.expect_idle();
}

TEST(Dispatcher, WhoWaitsIsToldWhenNobodyIsLeftUnlessOneReturnsInTime) {
  History h(PlanOf{}.pool(1, 1).route({0}));
  const auto a = h.arrive(0s), brief = h.arrive(0s, within(5s)), patient = h.arrive(0s);
  h.end(1s, a, status(429, 7s));
  EXPECT_EQ(h.code(a), Code::as_received);
  EXPECT_EQ(h.code(brief), Code::no_healthy_backend);
  EXPECT_TRUE(h.waits(patient));
  h.pass_until(8s);
  EXPECT_TRUE(h.runs(patient));
  const auto later = h.arrive(8s);
  for (int i = 0; i < 3; ++i) h.probe(9s, 0, false);
  EXPECT_EQ(h.code(later), Code::no_healthy_backend);
  h.end(10s, patient, ok());
  h.expect_idle();
}

TEST(Dispatcher, TheLastCoolingBackendIsTriedWhereTheConfigurationSaysSo) {
  History h(PlanOf{}.pool(1, 2).route({0}).with([](Plan& p) {
    p.endpoints[0].health.cooldown_last_backend = LastCooling::attempt;
    p.routes[0].retry.attempts_max = 2;
  }));
  const auto a = h.arrive(0s);
  h.end(0s, a, status(429, 7s));
  EXPECT_TRUE(h.waits(a));  // for what it was advised
  const auto b = h.arrive(1s);
  EXPECT_TRUE(h.runs(b));
  EXPECT_TRUE(h.servable(0));
  h.end(2s, b, ok());
  h.pass_until(7s);
  ASSERT_TRUE(h.runs(a));
  h.end(8s, a, status(503));
  EXPECT_EQ(h.code(a), Code::as_received);
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

TEST(Dispatcher, WhoWaitsMovesToTheNewPoolsOrIsToldThatTheModelIsGone) {
  PlanOf of = PlanOf{}.pool(1, 1).pool(1, 1).route({0}).route({0});
  History h(of);
  const auto a = h.arrive(0s), b = h.arrive(0s), c = h.arrive(0s, {.route = RouteId{1}});
  Plan next = of.plan;
  next.routes[0].pools = {PoolId{1}};
  next.routes.pop_back();
  h.replan(1s, next);
  EXPECT_EQ(h.endpoint(b), 1u);
  EXPECT_EQ(h.code(c), Code::model_not_found);
  h.replan(2s, Plan{});
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
