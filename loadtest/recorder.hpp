// Latencies in a log-linear histogram: 64 equal buckets per power of two, so a value read back is within 1/128 (0.8 %)
// of what was recorded (the layout of HdrHistogram, Tene 2014, with 6 significant bits). Unit: microseconds,
// 0 .. 2^40 (12 days); larger ones count as that. Memory: 9 KiB, fixed; recording is a shift and an increment.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "policies/base/time.hpp"

namespace headgate::loadtest {

class Histogram {
 public:
  void record(Nanos value);  // below 0 counts as 0
  void merge(const Histogram& other);
  void clear() { *this = Histogram{}; }

  std::uint64_t count() const { return count_; }
  // The value at rank ceil(share * count), share in 0..1; the maximum itself for share 1; 0 when empty.
  double quantile_us(double share) const;
  double max_us() const { return static_cast<double>(max_us_); }
  double mean_us() const { return count_ == 0 ? 0.0 : sum_us_ / static_cast<double>(count_); }

 private:
  static constexpr unsigned sub_bits = 6;
  static constexpr unsigned octaves = 35;  // values below 64 are exact and fill the first two octaves' place
  std::array<std::uint32_t, (octaves + 1) << sub_bits> buckets_{};
  std::uint64_t count_ = 0, max_us_ = 0;
  double sum_us_ = 0;

  static std::size_t bucket_of(std::uint64_t us);
  static double middle_of(std::size_t bucket);
};

}  // namespace headgate::loadtest
