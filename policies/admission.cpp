#include "policies/admission.hpp"

#include <algorithm>

namespace headgate::policies {
namespace {

constexpr std::uint64_t samples_min = 20;
constexpr double held_weight = 1.0 / 16;
constexpr double longest_wait_s = 1e6;

}  // namespace

void Forecast::released(Time now, Nanos held) {
  const double held_s = std::chrono::duration<double>(held).count();
  held_mean_s_ = releases_.events() == 0 ? held_s : held_mean_s_ + held_weight * (held_s - held_mean_s_);
  releases_.event(now);
}

std::optional<double> Forecast::drain_per_s(Time now, std::uint32_t in_flight) const {
  if (releases_.events() < samples_min) return std::nullopt;
  const double floor = held_mean_s_ > 0 ? in_flight / held_mean_s_ : 0;
  return std::max(releases_.at(now), floor);
}

std::optional<Nanos> Forecast::wait(Time now, std::uint32_t queued, std::uint32_t in_flight) const {
  const std::optional<double> drain = drain_per_s(now, in_flight);
  if (!drain) return std::nullopt;
  const double ahead = static_cast<double>(queued) + 1;
  const double wait_s = *drain * longest_wait_s <= ahead ? longest_wait_s : ahead / *drain;
  return Nanos{static_cast<std::int64_t>(wait_s * 1e9)};
}

Nanos Forecast::service_q90(bool stream) const {
  const WindowQuantile& times = stream ? ttft_ : e2e_;
  return times.samples() < samples_min ? Nanos{0} : times.value();
}

Verdict admit(const Wait& wait, Nanos time_left, Nanos wait_max) {
  if (!wait.queue) return {};
  const Nanos usable = time_left - time_left / 10;
  if (wait.total() > usable) return {false, wait.total(), time_left, wait.total() - usable};
  if (*wait.queue > wait_max) return {false, *wait.queue, wait_max, *wait.queue - wait_max};
  return {};
}

}  // namespace headgate::policies
