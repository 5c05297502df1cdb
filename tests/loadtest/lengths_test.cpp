// The samples must have the shipped figures, which are those of the trace they were fitted to. 20,000 draws: the
// tolerances are several standard errors wide, and the seed is fixed.
#include "loadtest/lengths.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace headgate::loadtest {
namespace {

constexpr std::uint64_t samples = 20000, seed = 11;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double at(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

double variation(const std::vector<double>& values) {
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return std::sqrt(squares / static_cast<double>(values.size())) / middle;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t k) { return values[k]; });
  std::vector<double> rank(values.size());
  for (std::size_t k = 0; k < order.size(); ++k) rank[order[k]] = static_cast<double>(k);
  return rank;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double ma = mean(a), mb = mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    ab += (a[k] - ma) * (b[k] - mb);
    aa += (a[k] - ma) * (a[k] - ma);
    bb += (b[k] - mb) * (b[k] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

struct Samples {
  std::vector<double> input, output;
};

Samples draw_lengths() {
  Samples all;
  for (std::uint64_t id = 0; id < samples; ++id) {
    const Lengths lengths = azure_conv_lengths(seed, id);
    all.input.push_back(lengths.input);
    all.output.push_back(lengths.output);
  }
  return all;
}

TEST(AzureConvLengths, HaveTheMeansOfTheTrace) {
  const Samples all = draw_lengths();
  EXPECT_NEAR(mean(all.input), azure_conv_input_mean, 0.03 * azure_conv_input_mean);
  EXPECT_NEAR(mean(all.output), azure_conv_output_mean, 0.03 * azure_conv_output_mean);
}

TEST(AzureConvLengths, HaveTheQuantilesOfTheTable) {
  const Samples all = draw_lengths();
  for (const QuantilePoint& point : azure_conv_quantiles()) {
    if (point.share < 0.005 || point.share > 0.995) continue;
    // a step in the distribution moves a quantile far at a small change of share: compare within half a percent of it
    const double wide = 0.006;
    EXPECT_LE(at(all.input, std::max(0.0, point.share - wide)), point.input * 1.01 + 1) << point.share;
    EXPECT_GE(at(all.input, std::min(1.0, point.share + wide)), point.input * 0.99 - 1) << point.share;
    EXPECT_LE(at(all.output, std::max(0.0, point.share - wide)), point.output * 1.01 + 1) << point.share;
    EXPECT_GE(at(all.output, std::min(1.0, point.share + wide)), point.output * 0.99 - 1) << point.share;
  }
  EXPECT_GE(*std::ranges::min_element(all.input), 2);
  EXPECT_LE(*std::ranges::max_element(all.input), 14050);
  EXPECT_LE(*std::ranges::max_element(all.output), 1000);
}

TEST(AzureConvLengths, AreCorrelatedInRankAsInTheTrace) {
  const Samples all = draw_lengths();
  EXPECT_NEAR(correlation(ranks(all.input), ranks(all.output)), azure_conv_rank_correlation, 0.025);
}

TEST(AzureConvGaps, HaveMeanOneAndTheBurstinessOfTheTrace) {
  std::vector<double> gaps;
  for (std::uint64_t id = 0; id < samples; ++id) gaps.push_back(azure_conv_gap(seed, id));
  EXPECT_NEAR(mean(gaps), 1.0, 0.03);
  EXPECT_NEAR(variation(gaps), azure_conv_gap_cv, 0.03);
  EXPECT_GT(*std::ranges::min_element(gaps), 0);
}

TEST(ExponentialGaps, HaveMeanAndVariationOne) {
  std::vector<double> gaps;
  for (std::uint64_t id = 0; id < samples; ++id) gaps.push_back(exponential_gap(seed, id));
  EXPECT_NEAR(mean(gaps), 1.0, 0.03);
  EXPECT_NEAR(variation(gaps), 1.0, 0.03);
}

TEST(AzureConvLengths, DependOnSeedAndIdOnly) {
  const Lengths first = azure_conv_lengths(1, 5), again = azure_conv_lengths(1, 5);
  EXPECT_EQ(first.input, again.input);
  EXPECT_EQ(first.output, again.output);
  int differing = 0;
  for (std::uint64_t id = 0; id < 100; ++id) {
    differing += static_cast<int>(azure_conv_lengths(1, id).output != azure_conv_lengths(2, id).output);
  }
  EXPECT_GT(differing, 80);
}

}  // namespace
}  // namespace headgate::loadtest
