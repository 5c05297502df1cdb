// The last 20 verdicts on one endpoint, no older than 30 s: too many failures among them eject, where failures in a row
// never come because others succeed between them. (After Linkerd's success-rate accrual, which wants 0.8 over 30 s of 5
// requests or more.)
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "policies/base/time.hpp"

namespace headgate::policies {

class SuccessWindow {
 public:
  void add(Time now, bool ok) {
    at_[next_] = now;
    failed_ = ok ? failed_ & ~(1u << next_) : failed_ | 1u << next_;
    next_ = (next_ + 1) % size;
  }
  // With one more failure: at least 5 have failed, and fewer than that share have not.
  bool too_many(Time now, double success_ratio_min) const {
    std::uint32_t failures = 1, all = 1;
    if (static_cast<std::uint32_t>(std::popcount(failed_)) + 1 < failures_min) return false;
    for (std::uint32_t i = 0; i < size; ++i) {
      if (at_[i] == Time::min() || now - at_[i] > window) continue;
      ++all;
      failures += failed_ >> i & 1u;
    }
    return failures >= failures_min && all - failures < success_ratio_min * all;
  }
  template <class A>
  void image(A& a) {
    a(at_, failed_, next_);
  }

 private:
  static constexpr std::uint32_t size = 20, failures_min = 5;
  static constexpr Nanos window = std::chrono::seconds(30);
  static constexpr std::array<Time, size> never_yet() {
    std::array<Time, size> all{};
    all.fill(Time::min());
    return all;
  }

  std::array<Time, size> at_ = never_yet();
  std::uint32_t failed_ = 0, next_ = 0;  // failed_: a bit each
};

}  // namespace headgate::policies
