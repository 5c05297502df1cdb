// How far the gaps between written tokens are from those that the engine meant: whether this machine keeps up with the
// streams it plays. A write on loopback is the caller's to read when it returns.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "policies/base/time.hpp"

namespace headgate::mock {

class ItlErrors {
 public:
  static constexpr std::array bounds_ms{0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0};

  void gap(Nanos meant, Nanos written) {
    const double error_ms = std::chrono::duration<double, std::milli>(std::chrono::abs(written - meant)).count();
    std::size_t bucket = 0;
    while (bucket < bounds_ms.size() && error_ms > bounds_ms[bucket]) ++bucket;
    ++counts_[bucket];
    sum_ms_ += error_ms;
  }
  // By bucket, the last one for what is over every bound.
  const std::array<std::uint64_t, bounds_ms.size() + 1>& counts() const { return counts_; }
  double sum_ms() const { return sum_ms_; }

 private:
  std::array<std::uint64_t, bounds_ms.size() + 1> counts_{};
  double sum_ms_ = 0;
};

// Of one stream: the token written last.
struct TokenTimes {
  Time made{}, made_before{}, written_before{};  // zero: none
};

}  // namespace headgate::mock
