#include "policies/admission.hpp"

#include <algorithm>

namespace headgate::policies {
namespace {

constexpr double held_weight = 1.0 / 16;
constexpr double longest_wait_s = 1e6;

}  // namespace

void Forecast::released(Time now, Nanos held) {
  const double held_s = std::chrono::duration<double>(held).count();
  held_mean_s_ = releases_.events() == 0 ? held_s : held_mean_s_ + held_weight * (held_s - held_mean_s_);
  releases_.event(now);
}

void Forecast::answered(Time now, Nanos ttft, Nanos e2e, std::uint32_t output_tokens) {
  answered_at_ = now;
  const std::uint32_t gaps = ttft > Nanos{0} ? output_tokens - 1 : output_tokens;
  if (output_tokens == 0 || gaps == 0) return;
  const Nanos tpot = (e2e - ttft) / gaps;
  tpot_ = tpot_ == Nanos{0} ? tpot : tpot_ + (tpot - tpot_) / 16;
}

std::optional<double> Forecast::drain_per_s(Time now, std::uint32_t in_flight) const {
  if (releases_.events() < samples_min) return std::nullopt;
  const double floor = held_mean_s_ > 0 ? in_flight / held_mean_s_ : 0;
  return std::max(releases_.at(now), floor);
}

std::optional<Nanos> Forecast::wait(Time now, const Place& place, std::uint32_t in_flight) const {
  const std::optional<double> drain = drain_per_s(now, in_flight);
  if (!drain) return std::nullopt;
  double rate = *drain;
  if (place.repeat) {
    rate -= arrivals_.at(now);
  } else {
    for (std::size_t other = 0; other < classes_n; ++other) {
      if (other != static_cast<std::size_t>(place.klass) && starts_[other].events() > 0) rate -= starts_[other].at(now);
    }
    rate = std::max(rate, place.share * *drain);
  }
  const double ahead = static_cast<double>(place.ahead) + 1;
  const double wait_s = rate * longest_wait_s <= ahead ? longest_wait_s : ahead / rate;
  return Nanos{static_cast<std::int64_t>(wait_s * 1e9)};
}

Verdict admit(const Prospect& prospect) {
  if (!prospect.wait) return {};
  const Nanos usable = prospect.left / 10 * 7, needed = *prospect.wait + prospect.service;
  if (needed <= usable) return {};
  return {false, needed, prospect.left, needed - usable};
}

Verdict admit(const Prospect& content, const Prospect& whole, Nanos wait_max) {
  if (!content.wait) return {};
  Verdict worst = admit(content);
  if (const Verdict other = admit(whole); other.excess > worst.excess) worst = other;
  const Nanos over = *content.wait - wait_max;
  return over > worst.excess ? Verdict{false, *content.wait, wait_max, over} : worst;
}

}  // namespace headgate::policies
