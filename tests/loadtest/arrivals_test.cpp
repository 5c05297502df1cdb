#include "loadtest/arrivals.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

LoadOptions at_rate(double rate) {
  LoadOptions options;
  options.rate = rate;
  options.limit = 5000;
  return options;
}

TEST(Arrivals, ComeAtTheRateAndInOrder) {
  const Plan plan = plan_requests(at_rate(100));
  ASSERT_EQ(plan.problem, "");
  ASSERT_EQ(plan.requests.size(), 5000u);
  EXPECT_EQ(plan.requests.front().at, 0ns);
  EXPECT_TRUE(std::ranges::is_sorted(plan.requests, {}, &Planned::at));
  EXPECT_NEAR(static_cast<double>(plan.requests.back().at.count()) / 1e9, 50, 2.5);
}

TEST(Arrivals, ReplayWithTheSameSeedAndDifferWithAnother) {
  LoadOptions options = at_rate(100);
  options.lengths = options.arrivals = "azure-conv";
  const Plan first = plan_requests(options), again = plan_requests(options);
  for (std::size_t k = 0; k < first.requests.size(); ++k) {
    ASSERT_EQ(first.requests[k].at, again.requests[k].at);
    ASSERT_EQ(first.requests[k].input, again.requests[k].input);
  }
  options.seed = 2;
  EXPECT_NE(plan_requests(options).requests.back().at, first.requests.back().at);
}

TEST(Arrivals, SpeedDividesTime) {
  LoadOptions options = at_rate(100);
  const Plan plain = plan_requests(options);
  options.speed = 4;
  const Plan fast = plan_requests(options);
  for (std::size_t k = 0; k < 100; ++k) {
    EXPECT_NEAR(static_cast<double>(fast.requests[k].at.count()), static_cast<double>(plain.requests[k].at.count()) / 4,
                2);
  }
}

TEST(Arrivals, StopAtTheDuration) {
  LoadOptions options = at_rate(100);
  options.limit = 0;
  options.duration = "2s";
  const Plan plan = plan_requests(options);
  EXPECT_LE(plan.requests.back().at, 2s);
  EXPECT_NEAR(static_cast<double>(plan.requests.size()), 200, 60);
}

TEST(Arrivals, ShareStreamsOut) {
  LoadOptions options = at_rate(100);
  for (const auto& [share, low, high] : {std::tuple{0.0, 0, 0}, {1.0, 5000, 5000}, {0.25, 1100, 1400}}) {
    options.stream_share = share;
    const Plan plan = plan_requests(options);
    const auto streams = std::ranges::count_if(plan.requests, &Planned::stream);
    EXPECT_GE(streams, low);
    EXPECT_LE(streams, high);
  }
}

TEST(Arrivals, ReadATraceAtSpeed) {
  const std::string path = "/tmp/headgate_arrivals_" + std::to_string(getpid()) + ".csv";
  std::ofstream{path} << "{\"at_ms\":1000,\"input\":1,\"output\":1}\n{\"at_ms\":3000,\"input\":2,\"output\":2}\n";
  LoadOptions options;
  options.trace = path;
  options.speed = 4;
  const Plan plan = plan_requests(options);
  std::remove(path.c_str());
  ASSERT_EQ(plan.problem, "");
  EXPECT_EQ(plan.requests[1].at, 500ms);
  options.trace = "/nonexistent/trace.csv";
  EXPECT_EQ(plan_requests(options).problem, "/nonexistent/trace.csv:0: cannot be opened");
}

// Bins of 3 s: two requests in the first, one alone in the second, two in the last.
TEST(Arrivals, SpreadTheBatchesOfAMooncakeTraceOverTheirBins) {
  const std::string path = "/tmp/headgate_arrivals_" + std::to_string(getpid()) + ".jsonl";
  std::ofstream file{path};
  for (const auto& [at, output] : {std::pair{0, 1}, {0, 2}, {3000, 3}, {6000, 4}, {6000, 5}}) {
    file << "{\"timestamp\":" << at << ",\"input_length\":10,\"output_length\":" << output << ",\"hash_ids\":["
         << output << "]}\n";
  }
  file.close();
  LoadOptions options;
  options.trace = path;
  const Plan plan = plan_requests(options), again = plan_requests(options);
  options.seed = 2;
  const Plan other = plan_requests(options);
  std::remove(path.c_str());
  ASSERT_EQ(plan.problem, "");
  ASSERT_EQ(plan.requests.size(), 5u);
  std::map<std::uint32_t, Nanos> at;
  for (const Planned& planned : plan.requests) {
    at[planned.output] = planned.at;
    EXPECT_EQ(planned.prefix[0], planned.output) << "ids go with their request";
  }
  const Nanos begin = 3s - at[3];  // counted from the first arrival
  EXPECT_EQ(std::min(at[1], at[2]), 0s);
  EXPECT_LT(std::max(at[1], at[2]) + begin, 3s);
  for (const std::uint32_t last : {4u, 5u}) {
    EXPECT_GE(at[last] + begin, 6s);
    EXPECT_LT(at[last] + begin, 9s);
  }
  EXPECT_NE(at[4], at[5]);
  EXPECT_EQ(plan.requests[4].at, again.requests[4].at);
  EXPECT_NE(plan.requests[4].at, other.requests[4].at);
}

TEST(Arrivals, LoseNoRequestToASpeedThatIsTooLow) {
  const std::string path = "/tmp/headgate_arrivals_" + std::to_string(getpid()) + ".slow";
  std::ofstream{path} << "{\"at_ms\":0,\"input\":1,\"output\":1}\n{\"at_ms\":1000,\"input\":2,\"output\":2}\n";
  LoadOptions options;
  options.trace = path;
  options.speed = 1e-9;
  EXPECT_EQ(plan_requests(options).requests.at(1).at, Nanos(1'000'000'000'000'000'000)) << "just 1e12 ms";
  options.speed = 1e-10;
  EXPECT_EQ(plan_requests(options).problem, "speed is 1e-10: the plan would take longer than 30 years; raise it");
  options.duration = "1h";
  EXPECT_EQ(plan_requests(options).problem, "");
  EXPECT_EQ(plan_requests(options).requests.size(), 1u) << "as wished";
  std::remove(path.c_str());
  LoadOptions drawn = at_rate(1e-6);
  drawn.speed = 1e-6;
  EXPECT_EQ(plan_requests(drawn).problem,
            "speed is 1e-06: the plan would take longer than 30 years; raise speed or rate, or give --duration");
}

TEST(Arrivals, RefuseOptionsThatMakeNoPlan) {
  const auto problem_of = [](void (*change)(LoadOptions&)) {
    LoadOptions options = at_rate(10);
    change(options);
    return plan_requests(options).problem;
  };
  EXPECT_EQ(problem_of([](LoadOptions& o) { o.rate = 0; }), "give exactly one of --workload, --trace and --rate");
  EXPECT_EQ(problem_of([](LoadOptions& o) { o.trace = "x"; }), "give exactly one of --workload, --trace and --rate");
  EXPECT_EQ(problem_of([](LoadOptions& o) { o.limit = 0; }), "with --rate give --duration or --limit");
  EXPECT_NE(problem_of([](LoadOptions& o) { o.rate = -1; }), "");
  EXPECT_NE(problem_of([](LoadOptions& o) { o.speed = 0; }), "");
  EXPECT_NE(problem_of([](LoadOptions& o) { o.stream_share = 1.5; }), "");
  EXPECT_NE(problem_of([](LoadOptions& o) { o.lengths = "huge"; }), "");
  EXPECT_NE(problem_of([](LoadOptions& o) { o.arrivals = "late"; }), "");
  EXPECT_NE(problem_of([](LoadOptions& o) { o.duration = "5"; }), "");
  EXPECT_NE(problem_of([](LoadOptions& o) { o.output_tokens = 0; }), "");
}

}  // namespace
}  // namespace headgate::loadtest
