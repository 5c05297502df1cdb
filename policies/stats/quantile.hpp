// A quantile of the last 64 samples, exact over that window (nearest rank). Adding is constant time; the value is
// computed when asked for and again only after 8 more samples. A window forgets: after a change of load the old
// regime is gone within 64 samples, which a running P2 estimate would drag along.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "policies/base/time.hpp"

namespace headgate::policies {

class WindowQuantile {
 public:
  explicit WindowQuantile(double q) : q_(q) {}

  void add(Nanos sample) {
    window_[samples_ % window_.size()] = sample.count();
    ++samples_;
  }
  std::uint64_t samples() const { return samples_; }

  // Zero without samples.
  Nanos value() const {
    if (samples_ == 0) return Nanos{0};
    if (computed_at_ == 0 || samples_ - computed_at_ >= 8) compute();
    return Nanos{value_};
  }
  template <class A>
  void image(A& a) {
    a(q_, window_, samples_, value_, computed_at_);
  }

 private:
  void compute() const {
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(samples_, window_.size()));
    std::array<std::int64_t, 64> sorted = window_;
    const auto rank = std::min(n - 1, static_cast<std::size_t>(q_ * static_cast<double>(n)));
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(rank),
                     sorted.begin() + static_cast<std::ptrdiff_t>(n));
    value_ = sorted[rank];
    computed_at_ = samples_;
  }

  double q_;
  std::array<std::int64_t, 64> window_{};
  std::uint64_t samples_ = 0;
  mutable std::int64_t value_ = 0;
  mutable std::uint64_t computed_at_ = 0;
};

}  // namespace headgate::policies
