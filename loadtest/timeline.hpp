// Things that happen while the load runs: commands at given times, and what a kill among them did to the streams.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loadtest/record.hpp"
#include "loadtest/when.hpp"

namespace headgate::loadtest {

struct TimelineEvent {
  When when;
  std::string label, command;     // command: for /bin/sh -c
  std::string kill;               // the backend the command kills; empty: none
  std::uint32_t streams_min = 0;  // do it once that many streams have content from `kill` and no finish
};

// The text form of LoadOptions::events; on error `problem` says what is wrong.
std::optional<TimelineEvent> parse_event(std::string_view text, std::string& problem);

// How an event went.
struct Happened {
  enum class State : std::uint8_t { waiting, running, done } state = State::waiting;
  Nanos begun{}, ended{};  // of the command, since the start of the run
  int exit_code = -1;
  pid_t pid = -1;
  std::vector<std::uint64_t> sending;  // requests with content from `kill` and no finish when the command began
};

// Starts `command` by /bin/sh with no open files but standard error; -1 when that is impossible.
pid_t spawn_shell(const std::string& command);
// True once the child has ended; a signal counts as 128 + its number.
bool reap(pid_t pid, int& exit_code);

// What a kill did. Streams of the killed backend that were cut must be those it was sending; the two sets are taken
// at different places, so bytes that were on their way within `slack` of the kill explain a difference: 250 ms, and
// twice what the generator was ever late itself, since a machine without time to spare delays the gateway alike.
struct KillAnalysis {
  std::string backend;
  Nanos at{};
  std::uint64_t sending = 0;  // streams with content from it and unfinished when the kill began
  std::uint64_t cut = 0;      // of its streams, after the kill: each ended in one error event
  std::uint64_t cut_dirty = 0;
  std::uint64_t finished_on_the_way = 0, begun_on_the_way = 0;  // the explained differences
  std::uint64_t unexplained = 0;
  bool exact = false;                                    // nothing unexplained, nothing dirty
  double ttft_p99_before_ms = 0, ttft_p99_after_ms = 0;  // of requests intended in the 10 s before and after
};
struct KillBounds {
  Nanos next_kill_of_it = Nanos::max();
  Nanos slack = std::chrono::milliseconds(250);
};
KillAnalysis analyse_kill(const TimelineEvent& event, const Happened& happened, const KillBounds& bounds,
                          const std::vector<Record>& records, const Names& names);

}  // namespace headgate::loadtest
