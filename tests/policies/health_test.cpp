#include "policies/health.hpp"

#include <gtest/gtest.h>

#include "policies/moment.hpp"

namespace headgate::policies {
namespace {

struct Subject : Health {
  explicit Subject(double success_ratio_min = 0) {
    configure({.success_ratio_min = success_ratio_min, .eject_max = 120s});
  }
  void fail(Nanos when, int times = 1) {
    for (int i = 0; i < times; ++i) failed(at(when), false, true);
  }
};

TEST(Health, FiveHardFailuresInARowEject) {
  Subject health;
  health.fail(0s, 4);
  EXPECT_EQ(health.state(), HealthState::up);
  health.succeeded(at(0s), false);
  health.fail(0s, 4);
  EXPECT_EQ(health.state(), HealthState::up);
  health.fail(1s);
  EXPECT_EQ(health.state(), HealthState::ejected);
  EXPECT_EQ(health.due(), at(6s));
  EXPECT_EQ(health.returns_in(at(2s)), 4s);
  EXPECT_EQ(health.ejections(), 1u);
  EXPECT_EQ(health.changes(), 1u);
}

// Every other request fails, so there are never two in a row.
TEST(Health, HalfOfTheRequestsFailingEjects) {
  Subject health(0.8);
  for (int n = 0; n < 4; ++n) {
    health.fail(1s * n);
    health.first_content(at(1s * n), false);
    health.succeeded(at(1s * n), false, true);
  }
  EXPECT_EQ(health.state(), HealthState::up);
  health.fail(4s);  // the fifth of nine
  EXPECT_EQ(health.state(), HealthState::ejected);
}

TEST(Health, OneFailureInSixIsBorneAndOldOnesAreForgotten) {
  Subject borne(0.8);
  for (int n = 0; n < 100; ++n) {
    n % 6 == 0 ? borne.fail(100ms * n) : borne.succeeded(at(100ms * n), false);
  }
  EXPECT_EQ(borne.state(), HealthState::up);
  Subject forgets(0.8);
  forgets.fail(0s, 4);
  forgets.succeeded(at(0s), false);
  forgets.fail(30'001ms);
  EXPECT_EQ(forgets.state(), HealthState::up);
  EXPECT_TRUE(forgets.about_to_eject(at(30s), false)) << "a moment sooner it would have been ejected";
}

// It comes back by one success; the next failure finds the others still there.
TEST(Health, WhoComesBackAndFailsAgainIsOutAtOnce) {
  Subject health(0.8);
  health.fail(0s, 5);
  health.wake(at(5s));
  health.trial_started();
  health.succeeded(at(5s), true);
  EXPECT_EQ(health.state(), HealthState::up);
  health.fail(6s);
  EXPECT_EQ(health.state(), HealthState::ejected);
  EXPECT_EQ(health.due(), at(16s)) << "twice as long";
}

TEST(Health, WhoComesBackMayUseMoreEachSecond) {
  Subject health;
  EXPECT_EQ(health.ramp_tenths(), 10u);
  health.fail(0s, 5);
  health.wake(at(5s));
  health.trial_started();
  health.first_content(at(6s), true);
  EXPECT_EQ(health.ramp_tenths(), 1u);
  EXPECT_EQ(health.due(), at(7s));
  health.wake(at(7s));
  EXPECT_EQ(health.ramp_tenths(), 2u);
  health.wake(at(14'999ms));
  EXPECT_EQ(health.ramp_tenths(), 9u);
  health.wake(at(15s));
  EXPECT_EQ(health.ramp_tenths(), 10u);
  EXPECT_EQ(health.due(), never);
}

TEST(Health, ASlowOneGetsARequestEachFiveSeconds) {
  Subject health;
  health.slow(at(0s), true);
  EXPECT_EQ(health.state(), HealthState::slow);
  EXPECT_TRUE(health.in_rotation());
  EXPECT_TRUE(health.held_back());
  EXPECT_EQ(health.due(), at(5s));
  health.wake(at(5s));
  EXPECT_FALSE(health.held_back());
  EXPECT_EQ(health.due(), never) << "until it was given one";
  health.started(at(8s));
  EXPECT_TRUE(health.held_back());
  EXPECT_EQ(health.due(), at(13s));
  health.slow(at(9s), false);
  EXPECT_EQ(health.state(), HealthState::up);
  EXPECT_EQ(health.ramp_tenths(), 1u);
}

TEST(Health, WithoutLeaveItIsCountedAndTheNextFailureAsksAgain) {
  Subject health;
  for (int i = 0; i < 7; ++i) health.failed(at(0s), false, false);
  EXPECT_EQ(health.state(), HealthState::up);
  EXPECT_TRUE(health.about_to_eject(at(0s), false));
  health.failed(at(0s), false, true);
  EXPECT_EQ(health.state(), HealthState::ejected);
}

TEST(Health, ExactlyOneHalfOpenRequestDecides) {
  Subject health;
  health.fail(0s, 5);
  health.wake(at(4999ms));
  EXPECT_EQ(health.state(), HealthState::ejected);
  health.wake(at(5s));
  EXPECT_EQ(health.state(), HealthState::half_open);
  EXPECT_TRUE(health.half_open_free());
  health.trial_started();
  EXPECT_FALSE(health.half_open_free());
  EXPECT_TRUE(health.hopeful());
  health.fail(5s, 9);  // of older attempts
  EXPECT_EQ(health.state(), HealthState::half_open);
  health.succeeded(at(6s), true);
  EXPECT_EQ(health.state(), HealthState::up);
  EXPECT_EQ(health.changes(), 2u);
}

TEST(Health, EjectionsDoubleToTheMaximumAndDecayWithCleanTime) {
  Subject health;
  health.fail(0s, 5);
  Nanos now = 0s;
  for (const Nanos wait : {5s, 10s, 20s, 40s, 80s, 120s, 120s}) {
    ASSERT_EQ(health.due(), at(now + wait));
    now += wait;
    health.wake(at(now));
    health.trial_started();
    health.failed(at(now), true, true);
  }
  now += 120s;
  health.wake(at(now));
  health.trial_started();
  health.succeeded(at(now), true);
  // The level stands at 5 (the sixth ejection reached the maximum); two levels fall in a minute.
  now += 61s;
  health.fail(now, 5);
  EXPECT_EQ(health.due(), at(now + 40s));
}

TEST(Health, FirstContentOfTheHalfOpenRequestIsEnough) {
  Subject health;
  health.fail(0s, 5);
  health.wake(at(5s));
  health.trial_started();
  health.first_content(at(6s), true);
  EXPECT_EQ(health.state(), HealthState::up);
}

TEST(Health, AHalfOpenRequestWithoutAVerdictLeavesThePlaceFree) {
  Subject health;
  health.fail(0s, 5);
  health.wake(at(5s));
  health.trial_started();
  health.no_verdict(true);
  EXPECT_TRUE(health.half_open_free());
}

TEST(Health, ALoadSignalFailsTheHalfOpenRequest) {
  Subject health;
  health.fail(0s, 5);
  health.wake(at(5s));
  health.trial_started();
  health.overloaded(at(6s), 2s, true, true);
  EXPECT_EQ(health.state(), HealthState::ejected);
  EXPECT_EQ(health.due(), at(8s));  // cooled by then, ejected until 16 s
  health.wake(at(8s));
  EXPECT_EQ(health.state(), HealthState::ejected);
  EXPECT_EQ(health.due(), at(16s));
}

TEST(Health, CoolsExactlyAsAdvisedUpToTheMaximum) {
  struct Row {
    Nanos advice, expected;
  };
  for (const Row row : {Row{7s, 7s}, Row{1ms, 1ms}, Row{60s, 60s}, Row{3600s, 60s}}) {
    Subject health;
    health.overloaded(at(0s), row.advice, false, true);
    EXPECT_EQ(health.state(), HealthState::cooling);
    EXPECT_EQ(health.returns_in(at(0s)), row.expected);
    health.wake(at(row.expected));
    EXPECT_EQ(health.state(), HealthState::up);
    EXPECT_EQ(health.ejections(), 0u);
  }
  Subject health;
  health.overloaded(at(0s), 0s, false, true);
  EXPECT_EQ(health.state(), HealthState::up);
}

TEST(Health, WithoutAdviceCooldownsDoubleOnceABurstUntilASuccess) {
  Subject health;
  Nanos now = 0s;
  for (const Nanos wait : {500ms, 1000ms, 2000ms, 4000ms, 5000ms, 5000ms}) {
    for (int burst = 0; burst < 10; ++burst) {
      health.overloaded(at(now), Nanos{-1}, false, true);
      ASSERT_EQ(health.returns_in(at(now)), wait);
    }
    now += 2 * wait;
    health.wake(at(now));
    ASSERT_EQ(health.state(), HealthState::up);
  }
  health.succeeded(at(now), false);
  health.overloaded(at(now), Nanos{-1}, false, true);
  EXPECT_EQ(health.returns_in(at(now)), 500ms);
}

TEST(Health, ThreeMissesInARowAreDownAndTwoHitsUp) {
  Subject health;
  Nanos now = 0s;
  for (int i = 0; i < 20; ++i, now += 5s) health.probed(at(now), i % 2 == 0);
  EXPECT_EQ(health.changes(), 0u);
  health.probed(at(now), true);
  for (int miss = 1; miss <= 3; ++miss, now += 5s) {
    health.probed(at(now), false);
    EXPECT_EQ(health.state(), miss < 3 ? HealthState::up : HealthState::down);
  }
  EXPECT_EQ(health.changes(), 1u);
  health.probed(at(now), true);
  EXPECT_EQ(health.state(), HealthState::down);
  EXPECT_EQ(health.returns_in(at(now + 1s)), 4s);
  health.probed(at(now + 5s), true);
  EXPECT_EQ(health.state(), HealthState::up);
  EXPECT_EQ(health.changes(), 2u);
}

TEST(Health, ARecentSuccessOverridesMissedProbes) {
  Subject health;
  health.succeeded(at(0s), false);
  for (const Nanos when : {5s, 10s, 15s}) health.probed(at(when), false);
  EXPECT_EQ(health.state(), HealthState::up);
  health.probed(at(20s), false);
  EXPECT_EQ(health.state(), HealthState::down);
  EXPECT_EQ(health.probe_failures(), 4u);
  health.succeeded(at(21s), false);
  EXPECT_EQ(health.state(), HealthState::up);
}

TEST(Health, APassingProbeDoesNotEndAnEjectionButComingBackFromDownAllowsTheHalfOpenRequest) {
  Subject health;
  health.fail(0s, 5);
  for (int i = 0; i < 5; ++i) health.probed(at(1s), true);
  EXPECT_EQ(health.state(), HealthState::ejected);
  for (int i = 0; i < 3; ++i) health.probed(at(2s), false);
  EXPECT_EQ(health.state(), HealthState::down);
  health.probed(at(3s), true);
  health.probed(at(3s), true);
  EXPECT_EQ(health.state(), HealthState::half_open);
  EXPECT_EQ(health.changes(), 1u);
}

}  // namespace
}  // namespace headgate::policies
