// From options to the list of requests to send: read from a trace or drawn from the seed. The whole plan stands before
// the first request leaves, so nothing that happens while it runs can change it.
#pragma once

#include <string>
#include <vector>

#include "loadtest/options.hpp"
#include "loadtest/trace.hpp"

namespace headgate::loadtest {

struct Plan {
  std::vector<Planned> requests;                               // by time; at least one unless there is a problem
  std::shared_ptr<const std::vector<std::uint32_t>> prefixes;  // as in TraceResult
  std::string problem;                                         // empty, or what is wrong with the options or the trace
};

Plan plan_requests(const LoadOptions& options);

}  // namespace headgate::loadtest
