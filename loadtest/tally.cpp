#include "loadtest/tally.hpp"

#include <algorithm>

namespace headgate::loadtest {

void Tally::late(Nanos lag_of_one) { lag.record(lag_of_one); }

void Tally::add(Window& window, const Record& record, bool good) {
  ++window.ended;
  window.good += static_cast<std::uint64_t>(good);
  if (const auto ttft = record.ttft()) window.ttft.record(*ttft);
  if (const auto tpot = record.tpot()) window.tpot.record(*tpot);
}

void Tally::ended(const Record& record, const Names& names, Nanos now) {
  ++outcomes[static_cast<std::size_t>(record.outcome)];
  if (record.outcome == Outcome::refused) ++refused_by[names[record.reason]];
  if (record.outcome == Outcome::failed_before_first_token) ++failed_by[names[record.reason]];
  const bool counts = good(record);
  good_since_last_send += is_good_since_last_send(record, classes_[record.traffic_class].slo) ? 1 : 0;
  add(whole_, record, counts);
  advance(now);
  add(recent_[static_cast<std::size_t>(slot_) % slots], record, counts);
}

std::string Tally::limits() const {
  const std::string& first = classes_.front().slo.text;
  for (const TrafficClass& one : classes_) {
    if (one.slo.text != first) return "the limits of each class";
  }
  return first.empty() ? "no limits" : first;
}

void Tally::advance(Nanos now) {
  const std::int64_t slot = now / slot_span;
  const std::int64_t steps = std::min<std::int64_t>(slot - slot_, slots);
  for (std::int64_t k = 1; k <= steps; ++k) recent_[static_cast<std::size_t>(slot_ + k) % slots] = {};
  // a jump over the whole window has cleared every slot, whichever the next one is
  slot_ = std::max(slot, slot_);
}

Tally::Window Tally::recent() const {
  Window sum;
  for (const Window& window : recent_) {
    sum.ended += window.ended;
    sum.good += window.good;
    sum.ttft.merge(window.ttft);
    sum.tpot.merge(window.tpot);
  }
  return sum;
}

double Tally::recent_span_s(Nanos now) const {
  // The newest slot is only partly over.
  const Nanos begin = std::max(Nanos{0}, slot_span * (slot_ - static_cast<std::int64_t>(slots) + 1));
  return std::max(0.001, std::chrono::duration<double>(now - begin).count());
}

}  // namespace headgate::loadtest
