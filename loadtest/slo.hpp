// The limits a request must meet to count for goodput.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policies/base/time.hpp"

namespace headgate::loadtest {

struct Slo {
  std::optional<Nanos> ttft, tpot, gap, e2e;  // absent: no limit; all but e2e concern streams only
  std::string text;                           // as written
};

// "ttft=1s,tpot=50ms,gap=500ms,e2e=30s", each at most once; empty: no limits. On error, `problem` says what is wrong.
std::optional<Slo> parse_slo(std::string_view text, std::string& problem);

}  // namespace headgate::loadtest
