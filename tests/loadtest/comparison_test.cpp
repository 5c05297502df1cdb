// Several seeds, one or two configurations: intervals by hand-worked numbers, pairing, what is printed.
#include "loadtest/sim/comparison.hpp"

#include <gtest/gtest.h>

#include "fleet.hpp"

namespace headgate::loadtest {
namespace {

TEST(Comparison, EstimatesMeanAndStudentsInterval) {
  // 1..5: standard deviation sqrt(2.5), t(4) = 2.776.
  const Estimate five = estimate({1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(five.mean, 3);
  EXPECT_NEAR(*five.ci95, 2.776 * std::sqrt(2.5 / 5), 1e-3);
  EXPECT_NEAR(*estimate({10, 20}).ci95, 12.706 * 5, 1e-2);
  EXPECT_DOUBLE_EQ(estimate({7}).mean, 7);
  EXPECT_FALSE(estimate({7}).ci95);
  // 41 values, t(40) = 2.021.
  std::vector<double> many;
  for (int n = 0; n <= 40; ++n) many.push_back(n);
  EXPECT_NEAR(*estimate(many).ci95 / std::sqrt(143.5 / 41), 2.021, 0.001);
}

LoadOptions overload() {
  LoadOptions load;
  load.rate = 40;
  load.duration = "20s";
  load.lengths = "azure-conv";
  return load;
}

Contender with_queue(int requests_max) {
  return {"queue of " + std::to_string(requests_max), Fleet(2, 8, requests_max).settings};
}

TEST(Comparison, TheSameConfigurationTwiceDiffersInNothing) {
  const Summary all = compare({with_queue(5), with_queue(5)}, overload(), 3, [](std::size_t, std::size_t) {});
  EXPECT_EQ(all["a"]["ok"], all["b"]["ok"]);
  EXPECT_GT(all["a"]["ok"]["ci95"], 0.0) << "seeds differ";
  const Summary flat = all["difference"].flatten();
  EXPECT_GT(flat.size(), 20u);
  for (const auto& [pointer, value] : flat.items()) EXPECT_EQ(value, 0.0) << pointer;
}

TEST(Comparison, TellsWhatAQueueBringsAndCosts) {
  std::size_t runs = 0;
  const Summary all =
      compare({with_queue(2), with_queue(30)}, overload(), 4, [&](std::size_t, std::size_t of) { runs = of; });
  EXPECT_EQ(runs, 8u);
  EXPECT_EQ(all["a"]["requests"], all["b"]["requests"]) << "the same arrivals";
  EXPECT_EQ(all["difference"]["requests"]["ci95"], 0.0);
  const Summary& apart = all["difference"];
  EXPECT_LT(apart["refused"]["mean"].get<double>() + apart["refused"]["ci95"].get<double>(), 0);
  EXPECT_GT(apart["ttft_ms"]["p99"]["mean"].get<double>() - apart["ttft_ms"]["p99"]["ci95"].get<double>(), 0);
  EXPECT_NEAR(apart["ok"]["mean"].get<double>(),
              all["b"]["ok"]["mean"].get<double>() - all["a"]["ok"]["mean"].get<double>(), 0.01);
  EXPECT_EQ(check_condition(all, "difference.refused.mean<0"), "");
  const std::string table = table_of_comparison(all);
  EXPECT_NE(table.find("A  queue of 2\nB  queue of 30\n"), table.npos) << table;
  EXPECT_NE(table.find("  queue_full"), table.npos) << table;
  EXPECT_NE(table.find("Mean over 4 seeds"), table.npos) << table;
}

TEST(Comparison, IsTheSameAgainWhateverCoreRunsIt) {
  const auto again = [] {
    return compare({with_queue(2), with_queue(30)}, overload(), 3, [](std::size_t, std::size_t) {}).dump();
  };
  EXPECT_EQ(again(), again());
}

// One run cannot tell chance from a difference: it claims nothing.
TEST(Comparison, OfOneSeedHasNoIntervals) {
  const Summary all = compare({with_queue(2), with_queue(30)}, overload(), 1, [](std::size_t, std::size_t) {});
  EXPECT_TRUE(all["a"]["ok"]["ci95"].is_null());
  EXPECT_TRUE(all["difference"]["refused"]["ci95"].is_null());
  EXPECT_LT(all["difference"]["refused"]["mean"], 0);
  const std::string table = table_of_comparison(all);
  EXPECT_EQ(table.find("±"), table.npos) << table;
  EXPECT_EQ(table.find('*'), table.npos) << table;
  EXPECT_NE(table.find("One seed tells nothing of chance"), table.npos) << table;
}

}  // namespace
}  // namespace headgate::loadtest
