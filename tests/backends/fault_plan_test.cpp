#include "backends/mock/fault_plan.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headgate::mock {
namespace {

using namespace std::chrono_literals;

constexpr Time plan_start{100s};

FaultPlan plan_of(const std::string& text, std::uint16_t replicas = 1, std::uint64_t seed = 1) {
  std::string problem;
  auto lines = read_fault_plan(text, replicas, problem);
  EXPECT_EQ(problem, "");
  return {std::move(lines), replicas, seed, plan_start};
}

// What comes within `span`, as "10.0 0 {...}".
std::vector<std::string> played(FaultPlan plan, Nanos span) {
  std::vector<std::string> out;
  while (plan.next() <= plan_start + span) {
    const auto due = plan.take();
    if (!due) continue;
    out.push_back(std::to_string((due->at - plan_start) / 1ms) + " " + std::to_string(due->replica) + " " + due->text);
  }
  return out;
}

TEST(MockFaultPlan, SaysWhatComesAndWhatIsUndone) {
  const std::string text = R"({"at_ms":500,"replica":1,"fault":"stall","after_tokens":3,"for_ms":200}

{"at_ms":100,"speed":0.5,"for_ms":400}
{"at_ms":700,"restart":true,"down_ms":50,"replica":0}
{"at_ms":800,"slots":2,"replica":0,"for_ms":10}
)";
  const std::vector<std::string> expected{R"(100 0 {"speed":0.5})",
                                          R"(100 1 {"speed":0.5})",
                                          R"(500 0 speed as before)",
                                          R"(500 1 speed as before)",
                                          R"(500 1 {"fault":"stall","after_tokens":3})",
                                          R"(700 1 {"clear":"stall"})",
                                          R"(700 0 {"restart":true,"down_ms":50})",
                                          R"(800 0 {"slots":2})",
                                          R"(810 0 slots as before)"};
  EXPECT_EQ(played(plan_of(text, 2), 10s), expected);
}

TEST(MockFaultPlan, WhatIsUndoneLeavesWhatOthersSet) {
  const auto hang = [](int at, int lasts) {
    return R"({"at_ms":)" + std::to_string(at) + R"(,"fault":"hang","for_ms":)" + std::to_string(lasts) + "}\n";
  };
  EXPECT_EQ(played(plan_of(hang(500, 1500) + hang(1500, 3000)), 10s),
            (std::vector<std::string>{R"(500 0 {"fault":"hang"})", R"(1500 0 {"fault":"hang"})",
                                      R"(4500 0 {"clear":"hang"})"}));
  EXPECT_EQ(played(plan_of(hang(500, 4000) + hang(1500, 1000)), 10s),
            (std::vector<std::string>{R"(500 0 {"fault":"hang"})", R"(1500 0 {"fault":"hang"})",
                                      R"(2500 0 {"fault":"hang"})", R"(4500 0 {"clear":"hang"})"}));
  std::string problem;
  FaultPlan plan(read_fault_plan(R"({"at_ms":1,"speed":0.5}
{"at_ms":2,"slots":8}
{"at_ms":3,"speed":0.2,"slots":2,"for_ms":10})",
                                 1, problem),
                 1, 1, plan_start);
  for (int n = 0; n < 3; ++n) plan.take();
  const auto back = std::get<Tuning>(plan.take()->control);
  EXPECT_EQ(back.speed, 0.5);
  EXPECT_EQ(back.slots, 8u);
  EXPECT_EQ(played(plan_of(hang(1, 100) + R"({"at_ms":50,"clear":true})"), 10s).size(), 2u);
}

TEST(MockFaultPlan, WhatComesAgainAndAgainIsDrawnFromTheSeed) {
  const std::string text = R"({"every_ms":1000,"fault":"reset","count":1})";
  const auto times = played(plan_of(text, 2), 1000s);
  EXPECT_NEAR(static_cast<double>(times.size()), 2000, 150);
  EXPECT_EQ(times, played(plan_of(text, 2), 1000s));
  EXPECT_NE(times, played(plan_of(text, 2, 2), 1000s));
  EXPECT_NE(played(plan_of(text, 1), 20s), played(plan_of(text, 2), 20s));
}

TEST(MockFaultPlan, NamesTheLineAndWhatIsWrongWithIt) {
  const std::string good = "{\"at_ms\":1,\"fault\":\"hang\"}\n\n";
  const std::pair<std::string, std::string> rows[] = {
      {"hang", R"(a JSON object is wanted, such as {"at_ms":10000,"fault":"hang"})"},
      {R"({"fault":"hang"})", "exactly one of at_ms and every_ms is needed"},
      {R"({"at_mss":1,"fault":"hang"})", R"(unknown field "at_mss"; did you mean "at_ms"?)"},
      {R"({"at_ms":)" + std::string(40, '[') + std::string(40, ']') + "}", "nested deeper than 32 levels"},
      {R"({"at_ms":1,"every_ms":1,"fault":"hang"})", "exactly one of at_ms and every_ms is needed"},
      {R"({"at_ms":-1,"fault":"hang"})", "at_ms must be a whole number of milliseconds from 0 to 86400000, not -1"},
      {R"({"every_ms":0,"fault":"hang"})", "every_ms must be a whole number of milliseconds from 1 to 86400000, not 0"},
      {R"({"at_ms":1,"replica":2,"fault":"hang"})", "replica must be a whole number from 0 to 1, not 2"},
      {R"({"at_ms":1,"fault":"hangs"})", R"(unknown fault "hangs"; did you mean "hang"?)"},
      {R"({"at_ms":1,"fault":"hang","for":3})",
       R"(unknown field "for" of fault "hang"; known here: health, count, share)"},
      {R"({"at_ms":1,"clear":true,"for_ms":3})", "for_ms is for faults, speed and slots"},
      {R"({"at_ms":1,"restart":true,"for_ms":3})", "for_ms is for faults, speed and slots"},
  };
  for (const auto& [line, wanted] : rows) {
    std::string problem;
    EXPECT_TRUE(read_fault_plan(good + line, 2, problem).empty());
    EXPECT_EQ(problem, "line 3: " + wanted);
  }
}

}  // namespace
}  // namespace headgate::mock
