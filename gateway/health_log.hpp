// Lines for the log when a backend's address has left the rotation or is back. It compares what it is shown with what
// it was shown before; what happened and was undone in between is one line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/name_book.hpp"
#include "policies/dispatcher.hpp"

namespace headgate::gateway {

class HealthLog {
 public:
  struct Line {
    bool warning = false;
    std::string text;
    friend bool operator==(const Line&, const Line&) = default;
  };
  std::vector<Line> compare(Time now, const policies::Snapshot& snapshot, const NameBook& names);

 private:
  struct Seen {
    bool up = true;
    std::uint64_t changes = 0;
  };
  std::vector<Seen> seen_;  // by endpoint id
};

}  // namespace headgate::gateway
