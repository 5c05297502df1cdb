// `headgate simulate --replay FILE`: makes the calls of an event log on a Dispatcher of this build and holds every
// order and every answer against those of the log. The log may be a gigabyte: it is mapped, not read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loadtest/options.hpp"

namespace headgate::loadtest {

struct Replayed {
  std::string build;  // that wrote the log
  std::uint64_t calls = 0, orders = 0, plans = 0;
  std::string difference;  // empty: every order is the same; else the first that is not
  std::string problem;     // empty, or why it could not be played to its end, with the place
  std::string note;        // the log was cut off, or full: what it holds was played
};

Replayed replay(std::string_view log);

// Reports where `options` say (json, expect). The exit code: 0 every order is equal, 1 one is not, 2 the log cannot be
// read or played to its end.
int replay_file(const std::string& path, const LoadOptions& options);

}  // namespace headgate::loadtest
