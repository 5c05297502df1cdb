#include "loadtest/workload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

Workload workload_of(const std::string& classes, const std::string& duration = "100s") {
  const WorkloadResult result =
      read_workload(R"({"duration": ")" + duration + R"(", "classes": )" + classes + "}", "w.jsonc", "");
  EXPECT_EQ(result.problem, "");
  return result.workload;
}

double seconds(const Planned& planned) { return std::chrono::duration<double>(planned.at).count(); }

std::size_t between(const std::vector<Planned>& requests, double from_s, double to_s) {
  return static_cast<std::size_t>(std::count_if(requests.begin(), requests.end(), [&](const Planned& planned) {
    return seconds(planned) >= from_s && seconds(planned) < to_s;
  }));
}

// Within four standard deviations of a Poisson count.
void expect_about(std::size_t count, double wanted) {
  EXPECT_NEAR(static_cast<double>(count), wanted, 4 * std::sqrt(wanted) + 1);
}

TEST(Workload, AStepHoldsUntilTheNextOne) {
  const auto requests = draw_workload(
      workload_of(R"({"a": {"rate": [{"per_s": 10}, {"at": "20s", "per_s": 100}, {"at": "30s", "per_s": 0}]}})"), 1, 0);
  expect_about(between(requests, 0, 20), 200);
  expect_about(between(requests, 20, 30), 1000);
  EXPECT_EQ(between(requests, 30, 100), 0u);
}

TEST(Workload, ARampRisesAndFallsEvenly) {
  const auto requests = draw_workload(
      workload_of(
          R"({"a": {"rate": [{"per_s": 0}, {"at": "50s", "per_s": 100, "ramp": true}, {"at": "100s", "per_s": 50, "ramp": true}]}})"),
      7, 0);
  expect_about(between(requests, 0, 25), 625);
  expect_about(between(requests, 25, 50), 1875);
  expect_about(between(requests, 50, 75), 2187.5);
  expect_about(between(requests, 75, 100), 1562.5);
}

// The end of the run cuts a ramp: it has come as far as it has.
TEST(Workload, ARampThatIsCutOffDoesNotReachItsRate) {
  const auto requests = draw_workload(
      workload_of(R"({"a": {"rate": [{"per_s": 0}, {"at": "200s", "per_s": 100, "ramp": true}]}})"), 3, 0);
  expect_about(requests.size(), 2500);
  EXPECT_LE(requests.back().at, 100s);
}

TEST(Workload, GammaGapsHaveTheirMeanAndVariation) {
  const auto requests =
      draw_workload(workload_of(R"({"a": {"rate": [{"per_s": 100}], "arrivals": "gamma", "cv": 2}})", "1000s"), 1, 0);
  std::vector<double> gaps;
  for (std::size_t n = 1; n < requests.size(); ++n) gaps.push_back(seconds(requests[n]) - seconds(requests[n - 1]));
  double mean = 0, squares = 0;
  for (const double gap : gaps) mean += gap / static_cast<double>(gaps.size());
  for (const double gap : gaps) squares += (gap - mean) * (gap - mean) / static_cast<double>(gaps.size());
  EXPECT_NEAR(mean, 0.01, 0.0003);
  EXPECT_NEAR(std::sqrt(squares) / mean, 2, 0.05);
}

// A renewal process that begins with an event would have (cv^2 - 1) / 2 = 49.5 too many.
TEST(Workload, BurstyArrivalsComeToTheirRate) {
  const Workload workload = workload_of(R"({"a": {"rate": [{"per_s": 1}], "arrivals": "gamma", "cv": 10}})", "600s");
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed)
    sum += static_cast<double>(draw_workload(workload, seed, 0).size()) / 2000;
  EXPECT_NEAR(sum, 600, 4 * 10 * std::sqrt(600.0 / 2000));
}

TEST(Workload, ClassesKeepTheirNumbersLengthsAndStreams) {
  const Workload workload = workload_of(R"({
    "chat": {"rate": [{"per_s": 20}], "lengths": "azure-conv"},
    "batch": {"model": "slow", "rate": [{"per_s": 5}], "prompt_tokens": 900, "output_tokens": 7, "stream_share": 0}})");
  const auto requests = draw_workload(workload, 1, 0);
  EXPECT_TRUE(
      std::is_sorted(requests.begin(), requests.end(), [](const auto& a, const auto& b) { return a.at < b.at; }));
  std::size_t batch = 0, chat = 0;
  for (const Planned& planned : requests) {
    planned.traffic_class == 0 ? ++batch : ++chat;  // by name
    EXPECT_EQ(planned.stream, planned.traffic_class == 1);
    if (planned.traffic_class == 0) {
      EXPECT_EQ(planned.input, 900u);
      EXPECT_EQ(planned.output, 7u);
    }
  }
  expect_about(batch, 500);
  expect_about(chat, 2000);
  EXPECT_EQ(draw_workload(workload, 1, 30).size(), 30u);
  EXPECT_EQ(draw_workload(workload, 1, 30)[29].at, requests[29].at);
  EXPECT_NE(draw_workload(workload, 2, 0)[0].at, requests[0].at);
}

TEST(Workload, LimitsOfAClassGoBeforeThoseOfTheRun) {
  const WorkloadResult result = read_workload(R"({"duration": "1s", "classes": {"a": {"rate": [{"per_s": 1}]},
                        "b": {"rate": [{"per_s": 1}], "slo": "e2e=9s", "model": "m"}}})",
                                              "w.jsonc", "ttft=1s");
  ASSERT_EQ(result.problem, "");
  ASSERT_EQ(result.classes.size(), 2u);
  EXPECT_EQ(result.classes[0].slo.text, "ttft=1s");
  EXPECT_EQ(result.classes[1].slo.text, "e2e=9s");
  EXPECT_EQ(result.classes[1].model, "m");
}

TEST(Workload, NamesTheLineAndWhatIsWrong) {
  const auto problem = [](const std::string& text) { return read_workload(text, "w.jsonc", "").problem; };
  const auto one = [&](const std::string& fields) {
    return problem("{\"duration\": \"1m\", \"classes\": {\n\"a\": {" + fields + "}}}");
  };
  EXPECT_EQ(problem("{\"classes\": {}}"),
            "w.jsonc:1: $.duration: is missing and has no default: How long requests arrive.\n"
            "w.jsonc:1: $.classes: is empty, must have 1..64");
  EXPECT_EQ(one(R"("rates": [])"),
            "w.jsonc:2: $.classes.a.rates: unknown field; did you mean \"rate\"?\n"
            "w.jsonc:2: $.classes.a.rate: is missing and has no default: Requests per second, over time.");
  EXPECT_EQ(one(R"("rate": [{"at": "3s", "per_s": 1}])"),
            "w.jsonc:2: $.classes.a.rate[0]: the first rate must be at 0s");
  EXPECT_EQ(one(R"("rate": [{"per_s": 1}, {"per_s": 2}])"),
            "w.jsonc:2: $.classes.a.rate[1]: at must be later than that of the rate before");
  EXPECT_EQ(one(R"("rate": [{"per_s": 0}])"), "w.jsonc:2: $.classes.a.rate: no rate is over 0");
  EXPECT_EQ(one(R"("rate": [{"per_s": 1}], "arrivals": "gama")").find("w.jsonc:2: $.classes.a.arrivals: is \"gama\""),
            0u);
  EXPECT_EQ(one(R"("rate": [{"per_s": 1}], "slo": "ttf=1s")")
                .find("w.jsonc:2: $.classes.a.slo: is \"ttf=1s\", must be limits"),
            0u);
  EXPECT_EQ(read_workload_file("/nowhere/w.jsonc", "").problem,
            "workload /nowhere/w.jsonc cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace headgate::loadtest
