// Endpoints going out of rotation and coming back, as requests see it. Stories in virtual time; history.hpp checks the
// books after every call.
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/history.hpp"

namespace headgate::policies {
namespace {

Arrival within(Nanos deadline) { return {.deadline = Time{} + deadline}; }

TEST(Rotation, EjectsAtMostHalfOfAPoolAndNeverItsLast) {
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

TEST(Rotation, AnEndpointOfSeveralPoolsNeedsTheLeaveOfAll) {
  History h(PlanOf{}.pool(2).shared_pool({0}).route({0}).route({1}).with([](Plan& p) {
    for (RoutePlan& route : p.routes) route.retry.attempts_max = 1;
  }));
  for (int i = 0; i < 20; ++i) h.end(0s, h.arrive(0s, {.route = RouteId{1}}), status(500));
  EXPECT_EQ(h.state(0).health, HealthState::up);
}

TEST(Rotation, AfterAnEjectionOneRequestDecides) {
  History h(PlanOf{}.pool(2, 4).route({0}).with([](Plan& p) {
    for (EndpointPlan& endpoint : p.endpoints) endpoint.health.slow_start = 0s;
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

TEST(Rotation, WhoWaitsForAHalfOpenRequestThatFailsGoesWhereItMay) {
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

TEST(Rotation, AllDownIsSaidAtOnceWithTheNextProbe) {
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

TEST(Rotation, WhoWaitsIsToldWhenNobodyIsLeftUnlessOneReturnsInTime) {
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

TEST(Rotation, TheLastCoolingBackendIsTriedWhereTheConfigurationSaysSo) {
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

}  // namespace
}  // namespace headgate::policies
