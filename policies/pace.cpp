#include "policies/pace.hpp"

#include <algorithm>
#include <cmath>

namespace headgate::policies {
namespace {

constexpr double forget = 0.999, outlying_weight = 0.05, outlying_max = 0.4;
constexpr double slow_from = 2.5, well_below = 1.5;
constexpr double ridge = 0.01;  // keeps what was never varied at zero
constexpr Nanos window_min = std::chrono::milliseconds(150);
constexpr std::uint32_t gaps_min = 10, in_a_row_min = 2;

double determinant(const std::array<double, 9>& m) {
  return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
}

}  // namespace

// Of like size, so that the ridge is fair.
std::array<double, PaceModel::n> PaceModel::terms(const PaceWindow& window) {
  return {1, window.streams / 50, window.prompt_tokens_per_step / 500};
}

void PaceModel::learn(const PaceWindow& window) {
  const auto x = terms(window);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) squares_[i * n + j] = forget * squares_[i * n + j] + x[i] * x[j];
    products_[i] = forget * products_[i] + x[i] * window.gap_ms;
  }
  weight_ = forget * weight_ + 1;
  gap_mean_ms_ += (window.gap_ms - gap_mean_ms_) / weight_;
  windows_ = std::min(windows_ + 1, windows_min);
}

// Never less than half of the mean gap: far from what was seen the line may lead anywhere.
double PaceModel::expected_ms(const PaceWindow& window) const {
  if (windows_ < windows_min) return 0;
  std::array<double, n* n> m = squares_;
  for (std::size_t i = 0; i < n; ++i) m[i * n + i] += ridge * weight_;
  const double whole = determinant(m);
  const auto x = terms(window);
  double expected = 0;
  for (std::size_t column = 0; column < n; ++column) {  // Cramer's rule
    std::array<double, n* n> replaced = m;
    for (std::size_t row = 0; row < n; ++row) replaced[row * n + column] = products_[row];
    expected += std::max(determinant(replaced) / whole, 0.0) * x[column];
  }
  return std::max(expected, gap_mean_ms_ / 2);
}

double PaceModel::slowness(const PaceWindow& window) {
  const double expected = expected_ms(window);
  const double slowness = expected > 0 ? window.gap_ms / expected : 1;
  const bool outlying = slowness >= well_below;
  outlying_ += outlying_weight * ((outlying ? 1.0 : 0.0) - outlying_);
  if (!outlying || outlying_ > outlying_max) learn(window);
  return slowness;
}

std::optional<PaceWindow> Pace::gaps(Time now, std::uint32_t count, Nanos sum, std::uint32_t in_flight) {
  if (gaps_ == 0 && count > 0 && (began_ == Time{} || now - began_ > std::chrono::seconds(1))) {
    began_ = now - std::min(sum / count, Nanos{std::chrono::seconds(1)});  // after a silence
  }
  gaps_ += count;
  gap_sum_ += sum;
  const Nanos lasted = now - began_;
  if (gaps_ < gaps_min || lasted < window_min) return std::nullopt;
  const Nanos gap = gap_sum_ / gaps_;
  const double steps =
      std::max(static_cast<double>(lasted.count()) / static_cast<double>(std::max(gap, Nanos{1}).count()), 1.0);
  const PaceWindow window{static_cast<double>(gap.count()) / 1e6, static_cast<double>(in_flight),
                          static_cast<double>(prompt_tokens_) / steps};
  began_ = now;
  gaps_ = 0;
  gap_sum_ = Nanos{0};
  prompt_tokens_ = 0;
  return window;
}

bool Pace::judge(double slowness, bool may_be_slow) {
  const bool speaks_for_change = slow_ ? slowness < well_below : slowness >= slow_from && may_be_slow;
  in_a_row_ = speaks_for_change ? in_a_row_ + 1 : 0;
  if (in_a_row_ < in_a_row_min) return false;
  slow_ = !slow_;
  in_a_row_ = 0;
  return true;
}

}  // namespace headgate::policies
