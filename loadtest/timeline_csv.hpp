// A run second by second, for plots. One row per second of the run, at most a million; what comes later is in the last:
//   second        from 0
//   sent          requests whose intended time is in it
//   ok, refused, failed, cut, left      those that ended in it, by how; wrong counts are in ok, dirty cuts in cut
//   good          of them, within the SLO
//   in_progress   sent and not ended at the second's end
//   ttft_p50_ms, ttft_p99_ms            of the streams whose first content came in it; empty: none
#pragma once

#include <iosfwd>

#include "loadtest/runner.hpp"

namespace headgate::loadtest {

void write_timeline(std::ostream& out, const RunResult& result);

}  // namespace headgate::loadtest
