#include "loadtest/report.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

Record stream_of(Outcome outcome, std::uint16_t backend, Nanos ttft, std::uint32_t tokens, Nanos per_token) {
  Record record;
  record.outcome = outcome;
  record.backend = backend;
  record.first = ttft;
  record.content_events = tokens;
  record.last = ttft + per_token * (tokens - 1);
  record.ended = record.last + 1ms;
  record.gap_max = per_token;
  return record;
}

RunResult small_run() {
  RunResult result;
  std::string problem;
  const Slo slo = *parse_slo("ttft=1s,tpot=50ms", problem);
  result.tally = Tally{{{.name = "", .model = "chat", .slo = slo}}};
  const auto a = result.names.number("p/a"), full = result.names.number("queue_full");
  result.records = {stream_of(Outcome::ok, a, 100ms, 11, 20ms), stream_of(Outcome::ok, a, 2s, 11, 20ms),
                    stream_of(Outcome::cut, a, 100ms, 3, 20ms)};
  Record refused;
  refused.outcome = Outcome::refused;
  refused.reason = full;
  refused.ended = 1ms;
  result.records.push_back(refused);
  for (const Record& record : result.records) {
    result.tally.late(1ms);
    result.tally.ended(record, result.names, record.ended);
  }
  result.duration = 2s;
  result.connected = 3;
  return result;
}

Summary small_summary() {
  const RunResult result = small_run();
  return summarize(result);
}

TEST(Report, CountsEachOutcomeOnce) {
  const Summary summary = small_summary();
  EXPECT_EQ(summary["requests"], 4);
  EXPECT_EQ(summary["ok"], 2);
  EXPECT_EQ(summary["cut"], 1);
  EXPECT_EQ(summary["cut_elsewhere"], 1);
  EXPECT_EQ(summary["refused_by"]["queue_full"], 1);
  EXPECT_EQ(summary["backends"]["p/a"]["requests"], 3);
  EXPECT_EQ(summary["failed_by"].dump(), "{}");
}

TEST(Report, GoodputCountsRefusalsAndSlowOnesAsMisses) {
  const Summary summary = small_summary();
  EXPECT_EQ(summary["goodput"]["requests"], 1);
  EXPECT_DOUBLE_EQ(summary["goodput"]["share"].get<double>(), 0.25);
  EXPECT_DOUBLE_EQ(summary["goodput"]["per_s"].get<double>(), 0.5);
}

TEST(Report, TableShowsEveryFigure) {
  const std::string table = table_of(small_summary());
  for (const char* part :
       {"requests     4", "queue_full 1", "25.0 %", "TTFT", "largest gap", "p/a", "generator lag p99"}) {
    EXPECT_NE(table.find(part), table.npos) << part << " in\n" << table;
  }
  EXPECT_EQ(table.find("WARNING"), table.npos);
}

TEST(Report, WarnsWhenTheGeneratorWasLate) {
  RunResult result = small_run();
  for (int k = 0; k < 10; ++k) result.tally.late(20ms);
  EXPECT_NE(table_of(summarize(result)).find("WARNING"), std::string::npos);
}

TEST(Report, ConditionsFollowPathsAndSayWhatIs) {
  const Summary summary = small_summary();
  for (const char* holds : {"ok=2", "ok==2", "cut>=1", "cut<2", "cut!=0", "ttft_ms.p50<150", "interrupted=false",
                            "goodput.slo=ttft=1s,tpot=50ms", "refused_by.queue_full<=1"}) {
    EXPECT_TRUE(is_condition(holds)) << holds;
    EXPECT_EQ(check_condition(summary, holds), "") << holds;
  }
  EXPECT_EQ(check_condition(summary, "ok>2"), "ok>2: it is 2");
  EXPECT_EQ(check_condition(summary, "okay=2"), "okay=2: the summary has no okay");
  EXPECT_EQ(check_condition(summary, "kills.0.exact=true"), "kills.0.exact=true: the summary has no kills.0.exact");
  for (const char* text : {"ok", "=2", "ok=", "ok=>2", "ok<>2"}) EXPECT_FALSE(is_condition(text)) << text;
}

TEST(Report, VerdictFailsOnStreamsCutElsewhere) {
  RunResult result = small_run();
  EXPECT_FALSE(verdict_of(summarize(result)).pass);
}

RunResult killed_run() {
  RunResult result = small_run();
  TimelineEvent kill;
  kill.kill = "p/a";
  kill.label = "killed p/a";
  kill.streams_min = 1;
  Happened happened;
  happened.state = Happened::State::done;
  happened.begun = 120ms;
  happened.exit_code = 0;
  happened.sending = {2};
  result.events = {kill};
  result.happened = {happened};
  // the slow ok stream was of another backend
  result.records[1].backend = result.names.number("p/b");
  return result;
}

TEST(Report, VerdictPassesWhenOnlyTheKilledBackendsStreamsWereCut) {
  const RunResult result = killed_run();
  const RunVerdict verdict = verdict_of(summarize(result));
  EXPECT_TRUE(verdict.pass) << verdict.text;
  EXPECT_TRUE(verdict.text.ends_with("PASS\n"));
}

TEST(Report, VerdictFailsWhenTooFewWereCutOrTheCommandFailed) {
  RunResult few = killed_run(), failed = killed_run(), absent = killed_run();
  few.events[0].streams_min = 2;
  failed.happened[0].exit_code = 1;
  absent.happened[0].state = Happened::State::waiting;
  for (const RunResult* result : {&few, &failed, &absent}) {
    const RunVerdict verdict = verdict_of(summarize(*result));
    EXPECT_FALSE(verdict.pass) << verdict.text;
    EXPECT_TRUE(verdict.text.ends_with("FAIL\n"));
  }
}

TEST(Report, WritesALinePerRequest) {
  std::ostringstream out;
  write_records(out, small_run());
  std::istringstream in{out.str()};
  std::string line;
  std::vector<Summary> lines;
  while (std::getline(in, line)) lines.push_back(Summary::parse(line));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1]["ttft_ms"], 2000.0);
  EXPECT_EQ(lines[1]["tpot_ms"], 20.0);
  EXPECT_EQ(lines[3]["reason"], "queue_full");
}

}  // namespace
}  // namespace headgate::loadtest
