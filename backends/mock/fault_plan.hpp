// What happens to the replicas of a mock server by itself: a file of JSON lines, each what POST /control takes
// (control.hpp) and when.
//   {"at_ms":10000,"replica":0,"fault":"stall","after_tokens":3,"for_ms":20000}
//   {"every_ms":30000,"restart":true,"down_ms":2000}
//   at_ms     once, so long after the start
//   every_ms  again and again, on average so long apart (exponential gaps, from the seed)
//   for_ms    undone after that time: a fault is cleared, speed is 1 again, slots are the profile's
//   replica   from 0; without it each of them, with every_ms at times of its own
// Limits: 10,000 lines; at_ms, for_ms up to a day.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/mock/control.hpp"
#include "policies/base/time.hpp"

namespace headgate::mock {

struct PlannedControl {
  std::optional<Nanos> at, every, lasts;  // exactly one of at and every
  std::optional<std::uint16_t> replica;
  Control control;
  std::string text;  // what was written, without the times
};

// By line; on error nothing, and `problem` says in which line and what is wrong.
std::vector<PlannedControl> read_fault_plan(std::string_view text, std::uint16_t replicas, std::string& problem);

// Which of them is due when. Pure: the host tells the time and does what is said.
class FaultPlan {
 public:
  struct Due {
    Time at{};
    std::uint16_t replica = 0;
    Control control;
    std::string text;
  };

  FaultPlan(std::vector<PlannedControl> lines, std::uint16_t replicas, std::uint64_t seed, Time start);
  Time next() const { return due_.empty() ? never : due_.front().at; }
  Due take();  // the next one; next() is not never

 private:
  struct Entry {
    Time at{};
    std::uint32_t line = 0;
    std::uint16_t replica = 0;
    bool undo = false;
    std::uint64_t times = 0;  // it has happened
  };
  static bool later(const Entry& a, const Entry& b);
  void put(Entry entry);
  Nanos gap(const Entry& entry) const;

  std::vector<PlannedControl> lines_;
  std::uint64_t seed_;
  std::vector<Entry> due_;  // a heap, the earliest first
};

}  // namespace headgate::mock
