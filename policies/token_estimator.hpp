// What a request will cost, before it has been served, from what the answers of its route have told:
//   input   bytes / 4 (base/tokens.hpp) times the mean of reported / estimated (an answer weighs 1/50 once 50 have
//   come) output  the caller's cap, or less where a quantile of the last 64 answers is less: q50 for fairness, q90
//   * 1.1 for
//           reservations; until 20 answers have come, the cap or the route's default_max_tokens or 256. n answers are n
//           times that.
// Learnt per route: what a tenant sends to one model differs less than models do, and 100,000 tenants would each have
// to learn it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/stats/quantile.hpp"

namespace headgate::policies {

struct TokenEstimate {
  std::uint32_t input = 0;
  std::uint32_t output_q50 = 0, output_q90 = 0;  // of all of its choices
};

class TokenEstimator {
 public:
  static constexpr std::uint32_t prior_output = 256;

  // `cap`: of all choices together; 0: none, then `default_cap` each (0: prior_output). No choices: no text is made.
  TokenEstimate estimate(std::uint32_t raw_input, std::uint32_t cap, std::uint32_t choices,
                         std::uint32_t default_cap) const {
    const std::uint64_t most = cap != 0 ? cap : ~0u;
    const std::uint64_t unknown =
        cap != 0 ? cap : std::uint64_t{default_cap != 0 ? default_cap : prior_output} * choices;
    const bool known = q50_.samples() >= samples_min;
    const auto all = [choices](const WindowQuantile& one) {
      return static_cast<std::uint64_t>(one.value().count()) * choices;
    };
    return {static_cast<std::uint32_t>(std::min(raw_input * ratio_, 4e9)),
            static_cast<std::uint32_t>(std::min(most, known ? all(q50_) : unknown)),
            static_cast<std::uint32_t>(std::min(most, known ? all(q90_) * 11 / 10 : unknown))};
  }

  // An answer came whole, and reported its usage.
  void learn(std::uint32_t raw_input, std::uint32_t input, std::uint32_t output, std::uint32_t choices) {
    if (raw_input > 0 && input > 0) {
      inputs_ = std::min(inputs_ + 1, 50.0);
      const double one = std::clamp(static_cast<double>(input) / raw_input, 0.05, 20.0);
      ratio_ += (one - ratio_) / inputs_;
    }
    if (output == 0) return;
    const Nanos each{output / std::max(choices, 1u)};  // the quantile counts tokens here
    q50_.add(each);
    q90_.add(each);
  }
  double input_ratio() const { return ratio_; }
  template <class A>
  void image(A& a) {
    a(ratio_, inputs_, q50_, q90_);
  }

 private:
  static constexpr std::uint64_t samples_min = 20;

  double ratio_ = 1, inputs_ = 0;
  WindowQuantile q50_{0.5}, q90_{0.9};
};

}  // namespace headgate::policies
