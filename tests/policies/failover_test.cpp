// What follows a failed attempt: another backend, a pause, a place at the head of the queue, an answer. Stories in
// virtual time; history.hpp checks the books after every call.
#include <gtest/gtest.h>

#include <set>

#include "policies/history.hpp"

namespace headgate::policies {
namespace {

TEST(Failover, FailsOverBeforeTheFirstTokenToAnotherBackend) {
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

TEST(Failover, AfterTheFirstTokenAFailureCutsTheStream) {
  History h(PlanOf{}.pool(2).route({0}));
  const auto r = h.arrive(0s, stream());
  h.first_token(1s, r);
  h.end(2s, r, failed(End::truncated));
  EXPECT_EQ(h.code(r), Code::stream_cut);
  EXPECT_EQ(h.of(r).starts.size(), 1u);
  h.expect_idle();
}

TEST(Failover, TheAnswerFollowsTheLastAttempt) {
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

TEST(Failover, OurOwnCredentialsFailOverButNeverToTheSameBackend) {
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

TEST(Failover, ALoneBackendIsTriedAgainAfterAPause) {
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

TEST(Failover, ACallerMayLeaveDuringThePause) {
  History h(PlanOf{}.pool(1).route({0}));
  const auto r = h.arrive(0s);
  h.end(1s, r, status(500));
  h.leave(1s, r);
  h.expect_idle();
  h.pass_until(5s);
  EXPECT_EQ(h.starts_at(0), 1u);
}

TEST(Failover, WhoPausesIsToldThatTheModelIsGone) {
  History h(PlanOf{}.pool(1).route({0}));
  const auto r = h.arrive(0s);
  h.end(1s, r, status(500));
  h.replan(1s, Plan{});
  EXPECT_EQ(h.code(r), Code::model_not_found);
  h.expect_idle();
}

TEST(Failover, AnotherBackendTriedLongAgoIsPreferredAfterThePause) {
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

TEST(Failover, AfterThePauseWhatItNeverTriedComesFirst) {
  History h(PlanOf{}.pool(3).route({0}));
  for (Nanos t = 0s; t < 40s; t += 10s) {
    h.set_by_hand(t, 2, {.drained = true, .weight = {}});
    const auto r = h.arrive(t);
    h.end(t + 1s, r, status(500));
    h.end(t + 2s, r, status(500));
    EXPECT_TRUE(h.waits(r));
    h.set_by_hand(t + 2s, 2, {.drained = false, .weight = {}});
    h.pass_until(t + 3s);
    EXPECT_EQ(h.endpoint(r), 2u);
    h.end(t + 3s, r, ok());
  }
  h.expect_idle();
}

TEST(Failover, RetriesStopWhenTheCreditIsUsedUp) {
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

TEST(Failover, WhatWasNeverDeliveredIsFreeOnce) {
  History h(PlanOf{}.pool(3).route({0}).with([](Plan& p) { p.routes[0].retry.budget_initial = 0; }));
  const auto r = h.arrive(0s);
  h.end(0s, r, failed(End::unsent));
  EXPECT_TRUE(h.runs(r));
  h.end(0s, r, status(500));
  EXPECT_EQ(h.code(r), Code::as_received);
  h.expect_idle();
}

TEST(Failover, TheDeadEvacuateBeyondTheCreditAndGoFirst) {
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

TEST(Failover, AWaitingRetryDropsItsExclusionWhenNothingElseIsLeft) {
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

}  // namespace
}  // namespace headgate::policies
