#include "loadtest/recorder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "policies/base/random.hpp"

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

TEST(Histogram, ReadsEveryValueBackWithinOnePercent) {
  for (std::uint64_t bits = 0; bits < 20000; ++bits) {
    // log-uniform over 1 us .. 10^11 us
    const auto us = static_cast<std::int64_t>(std::pow(10.0, 11 * unit(draw(7, bits, 0))));
    Histogram histogram;
    histogram.record(std::chrono::microseconds{us});
    histogram.record(std::chrono::microseconds{us});
    histogram.record(std::chrono::hours{24 * 11});  // so that the maximum does not answer for the value
    EXPECT_NEAR(histogram.quantile_us(0.5), static_cast<double>(us), 0.01 * static_cast<double>(us)) << us;
  }
}

TEST(Histogram, QuantilesMatchSortedValuesWithinOnePercent) {
  Histogram histogram;
  std::vector<double> values;
  for (std::uint64_t id = 0; id < 50000; ++id) {
    const double us = 200 - 30000 * std::log(1 - unit(draw(3, id, 0)));
    values.push_back(us);
    histogram.record(Nanos{static_cast<std::int64_t>(us * 1000)});
  }
  std::ranges::sort(values);
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const double exact = values[static_cast<std::size_t>(std::ceil(share * 50000)) - 1];
    EXPECT_NEAR(histogram.quantile_us(share), exact, 0.01 * exact) << share;
  }
  EXPECT_NEAR(histogram.max_us(), values.back(), 1);
  EXPECT_EQ(histogram.quantile_us(1), histogram.max_us());
}

TEST(Histogram, CountsSmallValuesExactly) {
  Histogram histogram;
  for (int us = 0; us < 128; ++us) histogram.record(std::chrono::microseconds{us});
  EXPECT_EQ(histogram.quantile_us(0.5), 63);
  EXPECT_EQ(histogram.quantile_us(0.0), 0);
  EXPECT_EQ(histogram.mean_us(), 63.5);
}

TEST(Histogram, TakesWhatIsOutOfRangeAtItsEnds) {
  Histogram histogram;
  EXPECT_EQ(histogram.quantile_us(0.99), 0);
  histogram.record(-5s);
  histogram.record(std::chrono::hours{24 * 365});
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.quantile_us(0.5), 0);
  EXPECT_EQ(histogram.max_us(), static_cast<double>((1ull << 40) - 1));
}

TEST(Histogram, MergesAsIfRecordedTogether) {
  Histogram left, right, both;
  for (std::uint64_t id = 0; id < 1000; ++id) {
    const Nanos value{static_cast<std::int64_t>(draw(1, id, 0) % 5'000'000'000)};
    (id % 3 == 0 ? left : right).record(value);
    both.record(value);
  }
  left.merge(right);
  EXPECT_EQ(left.count(), both.count());
  for (const double share : {0.1, 0.5, 0.99, 1.0}) EXPECT_EQ(left.quantile_us(share), both.quantile_us(share));
}

}  // namespace
}  // namespace headgate::loadtest
