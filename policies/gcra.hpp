// A rate limit without a clock or a bucket to refill: the generic cell rate algorithm (ITU-T I.371). At a limit of L
// units per minute each unit is worth 1/L minutes; tat is when all that was taken will have been earned back.
//   wait(n) = max(tat, now) + n/L - now - burst, with a burst of one minute (a whole limit at once); 0: n may be taken
// n over the burst never fits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/base/time.hpp"

namespace headgate::policies {

class Gcra {
 public:
  static constexpr Nanos burst = std::chrono::minutes(1);

  static bool fits(std::uint64_t per_minute, std::uint64_t n) { return n <= per_minute; }
  // How long until n units may be taken; zero: now.
  Nanos wait(Time now, std::uint64_t per_minute, std::uint64_t n) const {
    return std::max(Nanos{0}, std::max(tat_, now) + worth(per_minute, static_cast<double>(n)) - now - burst);
  }
  void take(Time now, std::uint64_t per_minute, std::uint64_t n) {
    tat_ = std::max(tat_, now) + worth(per_minute, static_cast<double>(n));
  }
  // What was taken cost so many units more, or less. A debt is at most one burst, so that an answer longer than
  // expected shuts nobody out for hours.
  void correct(Time now, std::uint64_t per_minute, std::int64_t units) {
    tat_ = std::min(std::max(tat_, now) + worth(per_minute, static_cast<double>(units)), now + 2 * burst);
  }
  std::uint64_t remaining(Time now, std::uint64_t per_minute) const {
    const Nanos left = burst - (std::max(tat_, now) - now);
    return left <= Nanos{0} ? 0
                            : static_cast<std::uint64_t>(static_cast<double>(left.count()) / minute_ns *
                                                         static_cast<double>(per_minute));
  }
  Nanos full_in(Time now) const { return std::max(tat_, now) - now; }
  template <class A>
  void image(A& a) {
    a(tat_);
  }

 private:
  static constexpr double minute_ns = 60e9;
  static Nanos worth(std::uint64_t per_minute, double n) {
    return Nanos{static_cast<std::int64_t>(n * minute_ns / static_cast<double>(per_minute))};
  }

  Time tat_{};
};

}  // namespace headgate::policies
