// Which of a pool's endpoints is slow for the work it has.
#include "policies/pace.hpp"

#include <gtest/gtest.h>

#include "policies/base/random.hpp"
#include "policies/history.hpp"

namespace headgate::policies {
namespace {

// 8 ms, 0.2 ms a stream, 0.03 ms a prompt token.
PaceWindow honest(double streams, double prompt_tokens, double times = 1) {
  return {times * (8 + 0.2 * streams + 0.03 * prompt_tokens), streams, prompt_tokens};
}

PaceModel taught(std::uint64_t seed = 1) {
  PaceModel model;
  for (std::uint64_t n = 0; n < 400; ++n) {
    const double noise = 0.9 + 0.2 * unit(draw(seed, n, 3));
    model.slowness(honest(20 + 60 * unit(draw(seed, n, 1)), 400 * unit(draw(seed, n, 2)), noise));
  }
  return model;
}

TEST(Pace, TheModelFindsWhatAStepTakes) {
  const PaceModel model = taught();
  for (const auto& [streams, tokens] : {std::pair{20.0, 0.0}, {80.0, 0.0}, {50.0, 400.0}, {80.0, 400.0}}) {
    const double is = honest(streams, tokens).gap_ms;
    EXPECT_NEAR(model.expected_ms(honest(streams, tokens)), is, 0.1 * is) << streams << " " << tokens;
  }
  PaceModel nothing;
  EXPECT_EQ(nothing.slowness(honest(50, 0, 9)), 1) << "too little is known";
}

// Its gap of 20 ms is what full ones have.
TEST(Pace, AnEmptySlowOneIsToldFromAFullGoodOne) {
  PaceModel model = taught();
  EXPECT_LT(model.slowness(honest(60, 0)), 1.5);
  EXPECT_GT(model.slowness({.gap_ms = 26, .streams = 2, .prompt_tokens_per_step = 0}), 1.5);
  EXPECT_LT(model.slowness(honest(50, 1000)), 1.5) << "prompts are no slowness";
}

TEST(Pace, OneSlowOneOfEightTeachesNothingAndHalfOfThemDo) {
  PaceModel model = taught();
  for (int n = 0; n < 800; ++n) model.slowness(honest(50, 0, n % 8 == 0 ? 5 : 1));
  EXPECT_NEAR(model.expected_ms(honest(50, 0)), 18, 2);
  for (int n = 0; n < 4000; ++n) model.slowness(honest(50, 0, 2));
  EXPECT_NEAR(model.expected_ms(honest(50, 0)), 36, 4) << "all are slower now";
}

TEST(Pace, TwoWindowsInARowDecide) {
  Pace pace;
  EXPECT_FALSE(pace.judge(5, true));
  EXPECT_FALSE(pace.judge(1, true));
  EXPECT_FALSE(pace.judge(2.5, true));
  EXPECT_TRUE(pace.judge(2.5, true));
  EXPECT_TRUE(pace.slow());
  EXPECT_FALSE(pace.judge(1.4, true));
  EXPECT_FALSE(pace.judge(1.5, true));
  EXPECT_FALSE(pace.judge(1, true));
  EXPECT_TRUE(pace.judge(1, true));
  EXPECT_FALSE(pace.slow());
  EXPECT_FALSE(pace.judge(9, false));
  EXPECT_FALSE(pace.judge(9, false)) << "without leave";
}

TEST(Pace, AWindowHas150MillisecondsAndTenGaps) {
  Pace pace;
  pace.prompt_read(900);
  EXPECT_FALSE(pace.gaps(at(100ms), 20, 20 * 10ms, 4)) << "90 ms of it were seen";
  const auto window = pace.gaps(at(240ms), 20, 20 * 20ms, 6);
  ASSERT_TRUE(window);
  EXPECT_DOUBLE_EQ(window->gap_ms, 15);
  EXPECT_DOUBLE_EQ(window->streams, 6);
  EXPECT_DOUBLE_EQ(window->prompt_tokens_per_step, 90) << "in ten steps";
  EXPECT_FALSE(pace.gaps(at(340ms), 5, 5 * 20ms, 6));
}

// Four endpoints with a stream each; reports of `slow` have gaps five times as long.
struct Watched : testing::Test {
  void report(Nanos from, int reports, std::uint32_t slow) {
    for (int n = 0; n < reports; ++n) {
      for (std::uint32_t e = 0; e < 4; ++e) {
        const Nanos gap = e == slow ? 100ms : 20ms;
        h.progress(from + n * 200ms, {{EndpointId{e}, 20, 20 * gap}});
      }
    }
  }
  History h{PlanOf{}.pool(4, 10).route({0})};
};

TEST_F(Watched, TheSlowOneIsAskedNowAndThenUntilItIsGoodAgain) {
  std::vector<RequestId> running;
  for (int n = 0; n < 4; ++n) running.push_back(h.arrive(0s, stream()));
  report(1s, 20, 9);
  report(5s, 2, 2);
  ASSERT_EQ(h.state(2).health, HealthState::slow);
  for (const RequestId id : running) h.end(6s, id, ok());
  const auto before = h.starts_at(2);
  std::vector<RequestId> later;
  for (int n = 0; n < 30; ++n) later.push_back(h.arrive(6s, stream()));
  EXPECT_EQ(h.starts_at(2), before) << "though it is idle";
  const auto waits = h.arrive(6s, stream());
  EXPECT_TRUE(h.waits(waits));
  h.pass_until(11s);
  EXPECT_TRUE(h.runs(waits)) << "its one request";
  EXPECT_EQ(h.starts_at(2), before + 1);
  report(12s, 3, 9);
  EXPECT_EQ(h.state(2).health, HealthState::up);
  EXPECT_EQ(h.state(2).max_in_flight, 1u) << "a tenth of 10";
  for (const RequestId id : later) h.end(20s, id, ok());
  h.end(20s, waits, ok());
  EXPECT_EQ(h.state(2).max_in_flight, 8u);
  h.pass_until(23s);
  EXPECT_EQ(h.state(2).max_in_flight, 10u);
  h.expect_idle();
}

TEST_F(Watched, WhenTheOthersAreGoneTheSlowOneIsUsedAsBefore) {
  std::vector<RequestId> running;
  for (int n = 0; n < 4; ++n) running.push_back(h.arrive(0s, stream()));
  report(1s, 20, 9);
  report(5s, 2, 2);
  ASSERT_EQ(h.state(2).health, HealthState::slow);
  for (const RequestId id : running) h.end(6s, id, ok());
  for (const std::uint32_t e : {0u, 1u, 3u}) {
    for (int n = 0; n < 3; ++n) h.probe(40s, e, false);
  }
  EXPECT_EQ(h.state(2).health, HealthState::up);
  std::vector<RequestId> later;
  for (int n = 0; n < 10; ++n) later.push_back(h.arrive(41s, stream()));
  for (const RequestId id : later) EXPECT_TRUE(h.runs(id));
  for (const RequestId id : later) h.end(42s, id, ok());
  h.expect_idle();
}

}  // namespace
}  // namespace headgate::policies
