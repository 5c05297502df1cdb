// From options to the list of requests to send: read from a trace or drawn from the seed. The whole plan stands before
// the first request leaves, so nothing that happens while it runs can change it.
#pragma once

#include <string>
#include <vector>

#include "loadtest/options.hpp"
#include "loadtest/trace.hpp"
#include "loadtest/traffic_class.hpp"

namespace headgate::loadtest {

struct Plan {                                                  // a request's class is its place in classes
  std::vector<Planned> requests;                               // by time; at least one unless there is a problem
  std::shared_ptr<const std::vector<std::uint32_t>> prefixes;  // as in TraceResult
  std::vector<TrafficClass> classes;                           // at least one
  std::string problem;                                         // empty, or what is wrong with the options or the trace
};

Plan plan_requests(const LoadOptions& options);

}  // namespace headgate::loadtest
