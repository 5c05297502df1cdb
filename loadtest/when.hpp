// A time on the way of a run: a duration since its start ("20s"), or a share of the arrivals' span ("1/3", "0.5").
#pragma once

#include <optional>
#include <string_view>

#include "policies/base/time.hpp"

namespace headgate::loadtest {

struct When {
  Nanos at{};
  double share = 0;  // of the span; added to `at`

  Nanos in(Nanos span) const {
    return at + Nanos(static_cast<std::int64_t>(share * static_cast<double>(span.count())));
  }
};

std::optional<When> parse_when(std::string_view text);

std::optional<double> parse_number(std::string_view text);  // a finite one, whole text

}  // namespace headgate::loadtest
