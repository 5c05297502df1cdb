// Deadlines of one thread on a coarse wheel: setting, moving and cancelling one is a few stores, and one timer of the
// host serves them all. An alarm rings at most one tick (8 ms) late, never early. After Varghese and Lauck, "Hashed and
// Hierarchical Timing Wheels", SOSP 1987 (scheme 6: one wheel, later rounds stay in their slot).
//
//   Alarm alarm(wheel, [&] { waker.wake(); });
//   alarm.set(deadline);     // replaces what was set
//   alarm.cancel();          // also on destruction
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "backends/io/loop.hpp"
#include "policies/base/time.hpp"

namespace headgate::backends {

class Wheel;

class Alarm {
 public:
  Alarm(Wheel& wheel, std::function<void()> ring) : wheel_(wheel), ring_(std::move(ring)) {}
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm() { cancel(); }

  void set(Time at);
  void cancel();
  Time at() const { return at_; }

 private:
  friend class Wheel;
  Wheel& wheel_;
  std::function<void()> ring_;
  Time at_ = never;
  Alarm** in_ = nullptr;  // the pointer that points here; null: not on the wheel
  Alarm* next_ = nullptr;
};

class Wheel {
 public:
  static constexpr Nanos tick = std::chrono::milliseconds(8);
  static constexpr std::size_t slots = 1024;  // one round is 8.2 s

  // `sleep_until` is asked to call turn() at a time; a later call replaces an earlier one.
  explicit Wheel(std::function<void(Time)> sleep_until) : sleep_until_(std::move(sleep_until)) {}
  Wheel(const Wheel&) = delete;
  Wheel& operator=(const Wheel&) = delete;

  void turn();  // rings what is due

 private:
  friend class Alarm;

  static std::int64_t tick_after(Time at) { return (at.time_since_epoch() + tick - Nanos(1)) / tick; }
  void insert(Alarm& alarm);
  void remove(Alarm& alarm);
  void sleep_until(std::int64_t tick_number);
  std::int64_t next_due(std::int64_t from) const;

  std::array<Alarm*, slots> slot_{};
  std::array<std::uint64_t, slots / 64> used_{};  // a bit per slot that may hold an alarm
  std::function<void(Time)> sleep_until_;
  std::int64_t done_ = 0;  // every tick up to this one has been served
  std::int64_t sleeping_to_ = INT64_MAX;
  std::size_t count_ = 0;
};

// A Wheel on a Loop.
class LoopWheel : public Wheel {
 public:
  explicit LoopWheel(Loop& loop) : Wheel([this](Time at) { timer_.set(at); }), timer_(loop, [this] { turn(); }) {}

 private:
  Loop::Timer timer_;
};

}  // namespace headgate::backends
