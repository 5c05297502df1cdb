// How often something happens, recent events weighing more: each event adds 1/tau, the sum decays by exp(-dt/tau).
// For a steady stream of r events per second it settles at r per second within about 3 tau.
#pragma once

#include <cmath>
#include <cstdint>

#include "policies/base/time.hpp"

namespace headgate::policies {

class Rate {
 public:
  explicit Rate(Nanos tau) : tau_s_(std::chrono::duration<double>(tau).count()) {}

  void event(Time now) {
    per_s_ = at(now) + 1.0 / tau_s_;
    last_ = now;
    ++events_;
  }
  double at(Time now) const {
    const double passed_s = std::chrono::duration<double>(now - last_).count();
    return passed_s <= 0 ? per_s_ : per_s_ * std::exp(-passed_s / tau_s_);
  }
  std::uint64_t events() const { return events_; }
  template <class A>
  void image(A& a) {
    a(tau_s_, per_s_, last_, events_);
  }

 private:
  double tau_s_;
  double per_s_ = 0;
  Time last_{};
  std::uint64_t events_ = 0;
};

}  // namespace headgate::policies
