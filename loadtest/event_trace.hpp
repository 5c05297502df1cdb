// The arrivals of an event log as a trace: when each request came, how long its prompt was and its answer.
// A prompt's length is what the backend reported, else the gateway's estimate. Of a request without an answer nobody
// knows how long it would have been: the mean of the others stands for it.
#pragma once

#include <string>
#include <string_view>

#include "loadtest/trace.hpp"

namespace headgate::loadtest {

bool is_event_log(std::string_view begin);
TraceResult read_event_trace(std::string_view log, const std::string& name, std::uint64_t limit);

}  // namespace headgate::loadtest
