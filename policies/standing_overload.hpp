// A queue that is late for good, not for a moment: over 2 s nobody was served who had waited less than a quarter of its
// latency budget (CoDel's question, with the server-side interval of Maurer, Fail at Scale, ACM Queue 2015). There the
// newest first serves somebody in time, where the oldest first serves everybody late.
#pragma once

#include <algorithm>

#include "policies/base/time.hpp"

namespace headgate::policies {

class StandingOverload {
 public:
  static constexpr Nanos interval = std::chrono::seconds(2);
  static constexpr int of_budget = 4;

  // Somebody was served after `waited`; `budget`: to its first content.
  void served(Time now, Nanos waited, Nanos budget) {
    if (now - began_ >= interval) {
      late_ = least_over_ > Nanos{0} && now - began_ < 2 * interval;
      began_ = now;
      least_over_ = Nanos::max();
    }
    least_over_ = std::min(least_over_, waited - budget / of_budget);
    if (least_over_ <= Nanos{0}) late_ = false;
  }
  bool late() const { return late_; }
  template <class A>
  void image(A& a) {
    a(began_, least_over_, late_);
  }

 private:
  Time began_{};
  Nanos least_over_ = Nanos::max();
  bool late_ = false;
};

}  // namespace headgate::policies
