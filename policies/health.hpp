// Whether one endpoint may be used, from how its attempts and probes end. Three conditions, each with its own rule:
//   breaker   `consecutive_failures` hard failures in a row, or too few successes (success_window.hpp), eject for eject
//   * 2^level (at most eject_max); then half-open:
//             exactly one request decides. Its success (or first content) closes the breaker, a hard failure or a load
//             signal ejects again one level higher. The level falls by one per 30 s without an ejection.
//   cooldown  a load signal (429, 503, 529) cools for exactly the advised time, at most cooldown_max; without advice
//             cooldown_first * 2^n, at most cooldown_unadvised_max; n grows once per cooldown and is reset by a
//             success.
//   slow start  after a return from ejection, from down or from slow: a tenth of its limit, a tenth more each tenth of
//             slow_start.
//   probes    down: probe_fall missed in a row and no success within 3 intervals; up again after probe_rise
//             good ones in a row, or by a success of real traffic, which overrides probes.
// A passing probe does not end an ejection; coming up from down does (the server was away and is back), into half-open.
// state(): down, else ejected or half_open, else cooling, else up. Only up is in rotation. The caps (half of a pool,
// never its last) are the caller's: it says with each hard failure whether it may eject. (Envoy's outlier detection and
// HAProxy's fall and rise are the models.)
#pragma once

#include <cstdint>

#include "policies/base/time.hpp"
#include "policies/dispatcher.hpp"
#include "policies/plan.hpp"
#include "policies/success_window.hpp"

namespace headgate::policies {

class Health {
 public:
  void configure(const HealthOptions& options) { options_ = options; }

  // `trial`: by the half-open request.
  void succeeded(Time now, bool trial, bool had_content = false);  // had_content: first_content() was called for it
  void first_content(Time now, bool trial);
  // Hard. With `may_eject` false it is counted and nothing more; a half-open request's place is free again.
  void failed(Time now, bool trial, bool may_eject);
  // A failure now would eject, if allowed: asked first, because the answer is dear.
  bool about_to_eject(Time now, bool trial) const;
  void overloaded(Time now, Nanos advice, bool trial, bool may_eject);
  void no_verdict(bool trial);  // the caller's or our fault, or called off: the half-open request is free again
  void probed(Time now, bool ok);
  void trial_started() { trial_out_ = true; }

  // Lets what is due by `now` happen: cooled down, half-open. Calls above expect it done.
  void wake(Time now);
  Time due() const;

  HealthState state() const;
  bool in_rotation() const { return state() == HealthState::up || state() == HealthState::slow; }
  bool half_open_free() const { return state() == HealthState::half_open && !trial_out_ && !cooling_; }
  // Usable now or as soon as its half-open request has decided.
  bool hopeful() const { return in_rotation() || (state() == HealthState::half_open && !cooling_); }
  bool ejected() const { return breaker_ != Breaker::closed; }
  bool would_be_usable(Time now) const;  // as state() would say after wake(now)
  // How long until it may be tried again: what is left, or the next probe. Zero: now.
  Nanos returns_in(Time now) const;
  Time out_until() const;

  // Slower than it should be (pace.hpp): it gets one request each 5 s.
  void slow(Time now, bool is_slow);
  bool held_back() const { return slow_ && !taste_; }
  void started(Time now);  // an attempt there
  // Tenths of its limit that it may use: fewer for slow_start after it came back.
  std::uint32_t ramp_tenths() const { return ramp_tenths_; }

  const HealthOptions& options() const { return options_; }
  LastCooling cooldown_last_backend() const { return options_.cooldown_last_backend; }
  std::uint64_t changes() const { return changes_; }
  std::uint64_t ejections() const { return ejections_; }
  std::uint64_t probe_failures() const { return probe_failures_; }
  template <class A>
  void image(A& a) {
    a(options_, breaker_, trial_out_, cooling_, down_, was_in_, failures_in_a_row_, eject_level_, cool_level_,
      misses_in_a_row_, hits_in_a_row_, verdicts_, open_until_, closed_at_, cooling_until_, success_at_, probed_at_,
      changes_, ejections_, probe_failures_, slow_, taste_, ramp_tenths_, taste_at_, ramp_at_);
  }

 private:
  enum class Breaker : std::uint8_t { closed, open, half_open };

  void eject(Time now);
  void fail_trial(Time now, bool may_eject);
  void close(Time now);
  void begin_ramp(Time now);
  void note();  // counts a change in or out of rotation

  HealthOptions options_;
  Breaker breaker_ = Breaker::closed;
  bool trial_out_ = false, cooling_ = false, down_ = false, was_in_ = true;
  bool slow_ = false, taste_ = false;  // taste: one request may go there though it is slow
  std::uint32_t ramp_tenths_ = 10;
  Time taste_at_{}, ramp_at_{};  // of the next
  std::uint32_t failures_in_a_row_ = 0, eject_level_ = 0, cool_level_ = 0;
  std::uint32_t misses_in_a_row_ = 0, hits_in_a_row_ = 0;
  SuccessWindow verdicts_;
  Time open_until_{}, closed_at_{}, cooling_until_{}, success_at_ = Time::min(), probed_at_ = Time::min();
  std::uint64_t changes_ = 0, ejections_ = 0, probe_failures_ = 0;
};

}  // namespace headgate::policies
