#include "loadtest/trace.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

TraceResult read(const std::string& text, std::uint64_t limit = 0) {
  std::istringstream in{text};
  return read_trace(in, "t.csv", limit);
}

const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens";

TEST(Trace, ReadsAzureLinesWithEitherLineEndAndNoneAtTheEnd) {
  for (const std::string end : {"\r\n", "\n"}) {
    const TraceResult trace = read(header + end + "2023-11-16 18:15:46.6805900,374,44" + end +
                                   "2023-11-16 18:15:50.9951690,396,109" + end + "2023-11-16 18:16:00,91,16");
    ASSERT_EQ(trace.problem, "");
    ASSERT_EQ(trace.requests.size(), 3u);
    EXPECT_EQ(trace.requests[0].at, 0ns);
    EXPECT_EQ(trace.requests[1].at, 4'314'579'000ns);
    EXPECT_EQ(trace.requests[2].at, 13'319'410'000ns);
    EXPECT_EQ(trace.requests[1].input, 396u);
    EXPECT_EQ(trace.requests[1].output, 109u);
  }
}

TEST(Trace, KeepsHundredNanosecondsAcrossMidnightAndMonths) {
  const TraceResult trace = read(header + "\n2024-02-28 23:59:59.9999999,1,1\n2024-03-01 00:00:00.0000001,1,1\n");
  ASSERT_EQ(trace.problem, "");
  EXPECT_EQ(trace.requests[1].at, 24h + 200ns);
}

TEST(Trace, ReadsJsonLines) {
  const TraceResult trace = read("{\"at_ms\":5,\"input\":3,\"output\":4}\n{\"output\":1,\"at_ms\":7.5,\"input\":2}");
  ASSERT_EQ(trace.problem, "");
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.requests[1].at, 2500us);
  EXPECT_EQ(trace.requests[1].input, 2u);
}

TEST(Trace, ReadsMooncakeLinesWithTheirHashIds) {
  std::istringstream in(
      "{\"timestamp\": 3000, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [0, 4000000000]}\n"
      "{\"timestamp\": 0, \"input_length\": 512, \"output_length\": 6, \"hash_ids\": [7]}\n");
  const TraceResult trace = read_trace(in, "t", 0);
  ASSERT_EQ(trace.problem, "");
  ASSERT_EQ(trace.requests.size(), 2u);
  const Planned &first = trace.requests[0], &second = trace.requests[1];
  EXPECT_EQ(first.at, 0s);
  EXPECT_EQ(first.input, 512u);
  EXPECT_EQ(std::vector(first.prefix.begin(), first.prefix.end()), (std::vector<std::uint32_t>{7}));
  EXPECT_EQ(second.at, 3s);
  EXPECT_EQ(second.output, 5u);
  EXPECT_EQ(std::vector(second.prefix.begin(), second.prefix.end()), (std::vector<std::uint32_t>{0, 4000000000}));
}

TEST(Trace, WantsAHashIdForEach512Tokens) {
  struct Row {
    const char *ids, *found;
  };
  for (const Row& row : {Row{"[1]", "hash_ids has 1 ids"}, Row{"[1,2,3]", "hash_ids has 3 ids"},
                         Row{"7", "hash_ids is 7"}, Row{"null", "hash_ids is null"}}) {
    const std::string line = R"({"timestamp":0,"input_length":513,"output_length":1,"hash_ids":)";
    EXPECT_EQ(
        read(line + row.ids + "}").problem,
        std::string("t.csv:1: ") + row.found + "; a list of 2 is wanted, one for each 512 tokens of input_length");
  }
  EXPECT_EQ(read(R"({"timestamp":0,"input_length":1,"output_length":1})").problem,
            "t.csv:1: hash_ids is missing; a list of 1 is wanted, one for each 512 tokens of input_length");
  EXPECT_EQ(read(R"({"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[-1]})").problem,
            "t.csv:1: hash_ids holds -1; whole numbers in 0..4294967295 are wanted");
  EXPECT_EQ(read(R"({"timestamp":-2,"input_length":1,"output_length":1,"hash_ids":[1]})").problem,
            "t.csv:1: timestamp is -2; a number in 0..1e12 is wanted");
  EXPECT_EQ(read(R"({"timestamp":0,"input_length":1,"output_length":0,"hash_ids":[1]})").problem,
            "t.csv:1: output_length is 0; a whole number in 1..1000000 is wanted");
}

TEST(Trace, SortsByTimeAndStopsAtTheLimit) {
  const std::string text = header + "\n2024-01-01 00:00:05,5,5\n2024-01-01 00:00:03,3,3\nrubbish\n";
  const TraceResult trace = read(text, 2);
  ASSERT_EQ(trace.problem, "");
  ASSERT_EQ(trace.requests.size(), 2u);
  EXPECT_EQ(trace.requests[0].input, 3u);
  EXPECT_EQ(trace.requests[1].at, 2s);
}

struct BadLine {
  std::string text, problem;
};

TEST(Trace, NamesFileLineAndFault) {
  const std::string good = header + "\r\n2024-01-01 00:00:00.5,1,1\r\n";
  const BadLine lines[] = {
      {good + "2024-01-01 00:00:01.5,1\r\n", "t.csv:3: three fields separated by commas are wanted"},
      {good + "2024-01-01 00:00:01.5,1,1,1\r\n", "t.csv:3: three fields separated by commas are wanted"},
      {good + "\r\n", "t.csv:3: three fields separated by commas are wanted"},
      {good + "2024-01-01 00:00:61.5,1,1\r\n", "t.csv:3: TIMESTAMP is \"2024-01-01 00:00:61.5\""},
      {good + "2024-02-30 00:00:01.5,1,1\r\n", "t.csv:3: TIMESTAMP is \"2024-02-30 00:00:01.5\""},
      {good + "2024-01-01 00:00:01.,1,1\r\n", "t.csv:3: TIMESTAMP is"},
      {good + "2024-01-01 00:00:01.5,x,1\r\n", "t.csv:3: ContextTokens is \"x\""},
      {good + "2024-01-01 00:00:01.5,0,1\r\n", "t.csv:3: ContextTokens is \"0\""},
      {good + "2024-01-01 00:00:01.5,1,1000001", "t.csv:3: GeneratedTokens is \"1000001\""},
      {good + "2024-01-01 00:00:01.5,1,-1", "t.csv:3: GeneratedTokens is \"-1\""},
      {"time,a,b\n", "t.csv:1: neither the header"},
      {"", "t.csv:1: no requests"},
      {header + "\n", "t.csv:2: no requests"},
      {"{\"at_ms\":0,\"input\":1,\"output\":1}\n{\"at_ms\":-1,\"input\":1,\"output\":1}\n",
       "t.csv:2: at_ms is -1; a number in"},
      {"{\"at_ms\":0,\"input\":1.5,\"output\":1}\n", "t.csv:1: input is 1.5; a whole number"},
      {"{\"at_ms\":0,\"input\":1}\n", "t.csv:1: output is missing; a whole number"},
      {"{\"at_ms\":0,\n", "t.csv:1: not a JSON object"},
  };
  for (const BadLine& line : lines) {
    const TraceResult trace = read(line.text);
    EXPECT_TRUE(trace.problem.starts_with(line.problem)) << line.text << " -> " << trace.problem;
    EXPECT_TRUE(trace.requests.empty());
  }
}

TEST(Trace, WritesWhatItReads) {
  const std::vector<Planned> plan = {{0ns, 10, 20}, {1'234'567'800ns, 30, 40}, {25h + 100ns, 50, 60}};
  std::ostringstream out;
  write_azure_csv(out, plan);
  EXPECT_EQ(out.str(),
            "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2026-01-01 00:00:00.0000000,10,20\r\n"
            "2026-01-01 00:00:01.2345678,30,40\r\n2026-01-02 01:00:00.0000001,50,60");
  const TraceResult back = read(out.str());
  ASSERT_EQ(back.problem, "");
  ASSERT_EQ(back.requests.size(), plan.size());
  for (std::size_t k = 0; k < plan.size(); ++k) {
    EXPECT_EQ(back.requests[k].at, plan[k].at);
    EXPECT_EQ(back.requests[k].input, plan[k].input);
    EXPECT_EQ(back.requests[k].output, plan[k].output);
  }
}

}  // namespace
}  // namespace headgate::loadtest
