// What happens to the replicas of a mock server by itself: a file of JSON lines, each what POST /control takes
// (control.hpp) and when.
//   {"at_ms":10000,"replica":0,"fault":"stall","after_tokens":3,"for_ms":20000}
//   {"every_ms":30000,"restart":true,"down_ms":2000}
//   at_ms     once, so long after the start
//   every_ms  again and again, on average so long apart (exponential gaps, from the seed)
//   for_ms    undone after that time: what another line has set meanwhile stays, what one had set before and not undone
//             is back; else the fault is cleared, speed is 1, slots are the profile's
//   replica   from 0; without it each of them, with every_ms at times of its own
// Limits: 10,000 lines; at_ms, for_ms up to a day.
#pragma once

#include <array>
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
  std::optional<Due> take();  // the next one, next() is not never; none: nothing is to be done any more

 private:
  struct Entry {
    Time at{};
    std::uint32_t line = 0;
    std::uint16_t replica = 0;
    bool undo = false;
    std::uint64_t times = 0;   // it has happened
    std::uint64_t serial = 0;  // of what is undone
  };
  // What lines have set and not undone, of a replica: by kind of fault, then speed, then slots; the last one holds.
  struct Set {
    std::uint64_t serial = 0;
    Control control;  // a Fault, or a Tuning of one field
    std::string text;
  };
  static constexpr std::size_t speed_at = fault_names.size(), slots_at = speed_at + 1;
  using Sets = std::array<std::vector<Set>, slots_at + 1>;

  static bool later(const Entry& a, const Entry& b);
  void put(Entry entry);
  Nanos gap(const Entry& entry) const;
  void note(const Entry& entry, bool undone_later);
  std::optional<Due> undo(const Entry& entry);

  std::vector<PlannedControl> lines_;
  std::uint64_t seed_, serial_ = 0;
  std::vector<Sets> sets_;  // by replica
  std::vector<Entry> due_;  // a heap, the earliest first
};

}  // namespace headgate::mock
