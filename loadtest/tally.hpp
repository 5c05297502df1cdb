// Running totals while the load runs: since the start, and over the last 10 s in slots of half a second.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "loadtest/record.hpp"
#include "loadtest/recorder.hpp"
#include "loadtest/traffic_class.hpp"

namespace headgate::loadtest {

class Tally {
 public:
  static constexpr Nanos slot_span = std::chrono::milliseconds(500);
  static constexpr std::size_t slots = 20;

  explicit Tally(std::vector<TrafficClass> classes) : classes_(std::move(classes)), itl_(classes_.size()) {}

  void late(Nanos lag);  // how long after its intended time a request was begun
  void ended(const Record& record, const Names& names, Nanos now);
  void advance(Nanos now);  // forgets slots older than the window

  struct Window {
    std::uint64_t ended = 0, good = 0;
    Histogram ttft, tpot;
  };
  const Window& whole() const { return whole_; }
  Window recent() const;                  // of the last 10 s
  double recent_span_s(Nanos now) const;  // 10 s, less at the start

  std::array<std::uint64_t, 8> outcomes{};  // by Outcome
  std::map<std::string, std::uint64_t> refused_by, failed_by;
  Histogram lag;
  std::uint64_t good_since_last_send = 0;

  Histogram& itl(std::uint8_t traffic_class) { return itl_[traffic_class]; }  // gaps between content events
  const Histogram& itl(std::uint8_t traffic_class) const { return itl_[traffic_class]; }
  const std::vector<TrafficClass>& classes() const { return classes_; }
  std::string limits() const;  // what goodput is within, in words
  bool good(const Record& record) const { return is_good(record, classes_[record.traffic_class].slo); }

 private:
  static void add(Window& window, const Record& record, bool good);
  std::vector<TrafficClass> classes_;
  std::vector<Histogram> itl_;
  Window whole_;
  std::array<Window, slots> recent_;
  std::int64_t slot_ = 0;
};

}  // namespace headgate::loadtest
