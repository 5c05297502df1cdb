#include "loadtest/timeline_csv.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

Record ended(Outcome outcome, Nanos intended, Nanos end, std::optional<Nanos> first = {}) {
  Record record;
  record.outcome = outcome;
  record.intended = intended;
  record.ended = end;
  record.first = first;
  record.last = end;
  return record;
}

TEST(TimelineCsv, TellsEachSecond) {
  RunResult result;
  result.records = {ended(Outcome::ok, 0ms, 2500ms, 100ms), ended(Outcome::ok, 500ms, 2999ms, 800ms),
                    ended(Outcome::refused, 900ms, 900ms),  ended(Outcome::cut, 1s, 3s, 1200ms),
                    ended(Outcome::left, 1500ms, 3500ms),   ended(Outcome::failed_before_first_token, 1s, 1100ms),
                    ended(Outcome::ok, 2s, 2100ms, 2050ms), Record{}};
  std::string problem;
  std::ostringstream out;
  result.tally = Tally{{{.name = "", .model = "chat", .slo = *parse_slo("ttft=250ms", problem)}}};
  write_timeline(out, result);
  EXPECT_EQ(out.str(),
            "second,sent,ok,refused,failed,cut,left,good,in_progress,ttft_p50_ms,ttft_p99_ms\n"
            "0,3,0,1,0,0,0,0,2,100,300\n"
            "1,3,0,0,1,0,0,0,4,200,200\n"
            "2,1,3,0,0,0,0,2,2,50,50\n"
            "3,0,0,0,0,1,1,0,0,,\n");
}

}  // namespace
}  // namespace headgate::loadtest
