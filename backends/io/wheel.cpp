#include "backends/io/wheel.hpp"

#include <algorithm>
#include <bit>

namespace headgate::backends {

void Alarm::set(Time at) {
  if (at == at_ && in_ != nullptr) return;
  // Later than before: stay where it is, the wheel moves it on when its old slot comes up.
  if (in_ != nullptr && at > at_ && at != never) {
    at_ = at;
    return;
  }
  cancel();
  at_ = at;
  if (at != never) wheel_.insert(*this);
}

void Alarm::cancel() {
  if (in_ != nullptr) wheel_.remove(*this);
  at_ = never;
}

void Wheel::insert(Alarm& alarm) {
  if (count_ == 0) done_ = std::max(done_, tick_after(std::chrono::steady_clock::now()) - 1);
  const std::int64_t due = std::max(tick_after(alarm.at_), done_ + 1);
  const std::size_t s = static_cast<std::size_t>(due) % slots;
  alarm.next_ = slot_[s];
  if (alarm.next_ != nullptr) alarm.next_->in_ = &alarm.next_;
  alarm.in_ = &slot_[s];
  slot_[s] = &alarm;
  used_[s / 64] |= std::uint64_t{1} << (s % 64);
  ++count_;
  const std::int64_t visit = std::min(due, done_ + static_cast<std::int64_t>(slots));
  if (visit < sleeping_to_) sleep_until(visit);
}

void Wheel::remove(Alarm& alarm) {
  *alarm.in_ = alarm.next_;
  if (alarm.next_ != nullptr) alarm.next_->in_ = alarm.in_;
  alarm.in_ = nullptr;
  alarm.next_ = nullptr;
  --count_;
}

void Wheel::sleep_until(std::int64_t tick_number) {
  sleeping_to_ = tick_number;
  sleep_until_(Time(tick * tick_number));
}

// The first tick after `from` whose slot may hold an alarm; within one round.
std::int64_t Wheel::next_due(std::int64_t from) const {
  for (std::int64_t t = from + 1; t <= from + static_cast<std::int64_t>(slots);) {
    const std::size_t s = static_cast<std::size_t>(t) % slots;
    const std::uint64_t rest = used_[s / 64] >> (s % 64);
    if (rest != 0) return t + std::countr_zero(rest);
    t += static_cast<std::int64_t>(64 - s % 64);
  }
  return from + static_cast<std::int64_t>(slots);
}

void Wheel::turn() {
  sleeping_to_ = INT64_MAX;
  const Time now = std::chrono::steady_clock::now();
  const std::int64_t current = now.time_since_epoch() / tick;
  const std::int64_t first = std::max(done_ + 1, current - static_cast<std::int64_t>(slots) + 1);
  done_ = current;
  for (std::int64_t t = first; t <= current; ++t) {
    const std::size_t s = static_cast<std::size_t>(t) % slots;
    const std::uint64_t bit = std::uint64_t{1} << (s % 64);
    if ((used_[s / 64] & bit) == 0) continue;
    used_[s / 64] &= ~bit;
    // Detach the slot first: a ringing alarm may set or destroy others, which then unlink themselves from this list.
    Alarm* pending = slot_[s];
    slot_[s] = nullptr;
    if (pending != nullptr) pending->in_ = &pending;
    while (pending != nullptr) {
      Alarm& alarm = *pending;
      const Time at = alarm.at_;
      remove(alarm);
      if (at > now) {
        insert(alarm);
      } else {
        alarm.at_ = never;
        alarm.ring_();
      }
    }
  }
  if (count_ > 0) {
    const std::int64_t due = next_due(done_);
    if (due < sleeping_to_) sleep_until(due);
  }
}

}  // namespace headgate::backends
