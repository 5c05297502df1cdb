#include "policies/health.hpp"

#include <algorithm>

namespace headgate::policies {
namespace {

constexpr Nanos clean_time_per_level = 30s;
constexpr int intervals_a_success_holds = 3;
constexpr Nanos taste_every = 5s;

// first * 2^level, at most `most`.
Nanos doubled(Nanos first, std::uint32_t level, Nanos most) {
  Nanos wait = first;
  for (std::uint32_t i = 0; i < level && wait < most; ++i) wait *= 2;
  return std::min(wait, most);
}

}  // namespace

HealthState Health::state() const {
  if (down_) return HealthState::down;
  if (breaker_ == Breaker::open) return HealthState::ejected;
  if (breaker_ == Breaker::half_open) return HealthState::half_open;
  if (cooling_) return HealthState::cooling;
  return slow_ ? HealthState::slow : HealthState::up;
}

void Health::note() {
  const bool in = in_rotation();
  if (in != was_in_) ++changes_;
  was_in_ = in;
}

void Health::eject(Time now) {
  const Nanos wait = doubled(options_.eject, eject_level_, options_.eject_max);
  open_until_ = after(now, wait);
  if (wait < options_.eject_max) ++eject_level_;
  breaker_ = Breaker::open;
  trial_out_ = false;
  ramp_tenths_ = 10;
  failures_in_a_row_ = 0;
  ++ejections_;
}

void Health::fail_trial(Time now, bool may_eject) {
  if (may_eject) {
    eject(now);
  } else {
    trial_out_ = false;
  }
}

void Health::close(Time now) {
  breaker_ = Breaker::closed;
  trial_out_ = false;
  closed_at_ = now;
  begin_ramp(now);
}

void Health::begin_ramp(Time now) {
  if (options_.slow_start == Nanos{0}) return;
  ramp_tenths_ = 1;
  ramp_at_ = after(now, options_.slow_start / 10);
}

void Health::slow(Time now, bool is_slow) {
  if (slow_ && !is_slow) begin_ramp(now);
  slow_ = is_slow;
  taste_ = false;
  taste_at_ = after(now, taste_every);
}

void Health::started(Time now) {
  if (!slow_) return;
  taste_ = false;
  taste_at_ = after(now, taste_every);
}

void Health::succeeded(Time now, bool trial, bool had_content) {
  if (!had_content) verdicts_.add(now, true);
  success_at_ = now;
  failures_in_a_row_ = 0;
  cool_level_ = 0;
  down_ = false;
  if (trial && breaker_ == Breaker::half_open) close(now);
  note();
}

void Health::first_content(Time now, bool trial) {
  verdicts_.add(now, true);
  success_at_ = now;
  down_ = false;
  if (trial && breaker_ == Breaker::half_open) {
    failures_in_a_row_ = 0;
    close(now);
  }
  note();
}

bool Health::about_to_eject(Time now, bool trial) const {
  if (breaker_ == Breaker::closed) {
    return failures_in_a_row_ + 1 >= options_.consecutive_failures ||
           verdicts_.too_many(now, options_.success_ratio_min);
  }
  return breaker_ == Breaker::half_open && trial;
}

void Health::failed(Time now, bool trial, bool may_eject) {
  if (breaker_ == Breaker::half_open) {
    // Only its trial decides: failures of older attempts say what is known already.
    if (trial) fail_trial(now, may_eject);
  } else if (breaker_ == Breaker::closed) {
    const bool enough = about_to_eject(now, false);
    ++failures_in_a_row_;
    if (enough && may_eject) {
      const auto clean =
          static_cast<std::uint32_t>(std::min<std::int64_t>((now - closed_at_) / clean_time_per_level, 64));
      eject_level_ -= std::min(eject_level_, clean);
      eject(now);
    }
  }
  verdicts_.add(now, false);
  note();
}

void Health::overloaded(Time now, Nanos advice, bool trial, bool may_eject) {
  Nanos wait = std::min(advice, options_.cooldown_max);
  if (advice < Nanos{0} && cooling_) {
    wait = Nanos{0};  // a burst of refusals is one signal
  } else if (advice < Nanos{0}) {
    wait = doubled(options_.cooldown_first, cool_level_, options_.cooldown_unadvised_max);
    if (wait < options_.cooldown_unadvised_max) ++cool_level_;
  }
  if (wait > Nanos{0}) {
    const Time until = after(now, wait);
    cooling_until_ = cooling_ ? std::max(cooling_until_, until) : until;
    cooling_ = true;
  }
  if (trial && breaker_ == Breaker::half_open) fail_trial(now, may_eject);
  note();
}

void Health::no_verdict(bool trial) {
  if (trial) trial_out_ = false;
}

void Health::probed(Time now, bool ok) {
  probed_at_ = now;
  if (ok) {
    misses_in_a_row_ = 0;
    ++hits_in_a_row_;
    if (down_ && hits_in_a_row_ >= options_.probe_rise) {
      down_ = false;
      if (breaker_ == Breaker::closed) begin_ramp(now);
      if (breaker_ == Breaker::open) breaker_ = Breaker::half_open;
    }
  } else {
    ++probe_failures_;
    hits_in_a_row_ = 0;
    ++misses_in_a_row_;
    const Nanos fresh = options_.probe_interval * intervals_a_success_holds;
    const bool recent_success = success_at_ != Time::min() && now - success_at_ <= fresh;
    if (misses_in_a_row_ >= options_.probe_fall && !recent_success) down_ = true;
  }
  note();
}

void Health::wake(Time now) {
  if (cooling_ && cooling_until_ <= now) cooling_ = false;
  if (breaker_ == Breaker::open && open_until_ <= now) breaker_ = Breaker::half_open;
  if (slow_ && taste_at_ <= now) taste_ = true;
  for (; ramp_tenths_ < 10 && ramp_at_ <= now; ramp_at_ = after(ramp_at_, options_.slow_start / 10)) ++ramp_tenths_;
  note();
}

Time Health::due() const {
  Time at = never;
  if (cooling_) at = cooling_until_;
  if (breaker_ == Breaker::open) at = std::min(at, open_until_);
  if (slow_ && !taste_) at = std::min(at, taste_at_);
  if (ramp_tenths_ < 10) at = std::min(at, ramp_at_);
  return at;
}

bool Health::would_be_usable(Time now) const {
  if (down_) return false;
  const bool cool = !cooling_ || cooling_until_ <= now || cooldown_last_backend() == LastCooling::attempt;
  return cool && (breaker_ != Breaker::open || open_until_ <= now);
}

Time Health::out_until() const {
  Time until{};
  if (breaker_ == Breaker::open) until = open_until_;
  if (cooling_) until = std::max(until, cooling_until_);
  return until;
}

Nanos Health::returns_in(Time now) const {
  if (down_) {
    // Without a probe yet, the next is an interval away at most.
    const Time last = probed_at_ == Time::min() ? now : probed_at_;
    return std::max<Nanos>(after(last, options_.probe_interval) - now, Nanos{0});
  }
  return std::max<Nanos>(out_until() - now, Nanos{0});
}

}  // namespace headgate::policies
