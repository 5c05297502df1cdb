#include "policies/token_estimator.hpp"

#include <gtest/gtest.h>

#include "policies/moment.hpp"
#include "policies/standing_overload.hpp"

namespace headgate::policies {
namespace {

TEST(TokenEstimator, KnowsNothingButTheCapsAtFirst) {
  const TokenEstimator fresh;
  EXPECT_EQ(fresh.estimate(100, 0, 1, 0).input, 100u);
  EXPECT_EQ(fresh.estimate(100, 0, 1, 0).output_q50, TokenEstimator::prior_output);
  EXPECT_EQ(fresh.estimate(100, 0, 1, 600).output_q90, 600u);
  EXPECT_EQ(fresh.estimate(100, 0, 3, 600).output_q90, 1800u);
  EXPECT_EQ(fresh.estimate(100, 40, 1, 600).output_q90, 40u);
  EXPECT_EQ(fresh.estimate(100, 0, 0, 600).output_q90, 0u);  // embeddings
}

TEST(TokenEstimator, LearnsTheRatioAndTheQuantilesOfItsRoute) {
  TokenEstimator estimator;
  for (std::uint32_t n = 1; n <= 64; ++n) estimator.learn(1000, 1500, n * 10, 1);
  EXPECT_NEAR(estimator.input_ratio(), 1.5, 0.001);
  const TokenEstimate estimate = estimator.estimate(200, 0, 1, 5000);
  EXPECT_NEAR(estimate.input, 300, 1);
  EXPECT_NEAR(estimate.output_q50, 330, 10);
  EXPECT_NEAR(estimate.output_q90, 580 * 1.1, 15);
  EXPECT_EQ(estimator.estimate(200, 100, 1, 0).output_q90, 100u);
  for (int n = 0; n < 300; ++n) estimator.learn(1000, 800, 100, 1);  // another prompt language
  EXPECT_NEAR(estimator.input_ratio(), 0.8, 0.01);
  EXPECT_EQ(estimator.estimate(0, 0, 1, 0).output_q50, 100u);
}

TEST(TokenEstimator, OneAbsurdReportMovesItLittle) {
  TokenEstimator estimator;
  for (int n = 0; n < 100; ++n) estimator.learn(1000, 1000, 100, 1);
  estimator.learn(1, 4'000'000'000u, 100, 1);
  EXPECT_LE(estimator.input_ratio(), 1.4);
  estimator.learn(0, 100, 0, 1);  // nothing to learn
  EXPECT_LE(estimator.estimate(4'000'000'000u, 0, 1, 0).input, 4'000'000'000u);
}

TEST(StandingOverload, IsAQueueThatIsLateForTwoSeconds) {
  StandingOverload overload;
  for (Nanos now = 0s; now < 1900ms; now += 100ms) overload.served(at(now), 600ms, 2s);
  EXPECT_FALSE(overload.late());
  for (Nanos now = 1900ms; now < 4500ms; now += 100ms) overload.served(at(now), 600ms, 2s);
  EXPECT_TRUE(overload.late());
  overload.served(at(4500ms), 499ms, 2s);  // one in time is enough
  EXPECT_FALSE(overload.late());
  for (Nanos now = 4600ms; now < 6s; now += 100ms) overload.served(at(now), 400ms, 2s);
  EXPECT_FALSE(overload.late());
}

TEST(StandingOverload, ForgetsWhatWasBeforeAPause) {
  StandingOverload overload;
  for (Nanos now = 0s; now < 1900ms; now += 100ms) overload.served(at(now), 600ms, 2s);
  overload.served(at(100s), 600ms, 2s);
  EXPECT_FALSE(overload.late());
}

}  // namespace
}  // namespace headgate::policies
