// The open-loop load generator behind `headgate load`. Requests leave at their intended times whatever became of the
// earlier ones, and every latency counts from the intended time, so a server that stalls cannot hide it by slowing
// the load ("coordinated omission"; Tene, How NOT to Measure Latency, 2013).
#pragma once

#include "loadtest/options.hpp"

namespace headgate::loadtest {

// Runs to the end and prints its report. Returns the exit code: 0 finished; 1 nothing could be sent, an `expect`
// condition was false or the verdict is FAIL; 2 bad option, bad trace line or a file that cannot be
// written, named on standard error before anything is sent.
int load(const LoadOptions& options);

}  // namespace headgate::loadtest
