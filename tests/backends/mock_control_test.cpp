#include "backends/mock/control.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headgate::mock {
namespace {

std::string refusal(std::string_view body) {
  const Control control = read_control(body);
  const auto* error = std::get_if<ControlError>(&control);
  return error == nullptr ? "accepted" : error->message;
}

TEST(MockControl, ReadsEveryFault) {
  for (const std::string body :
       {R"({"fault":"refuse"})", R"({"fault":"hang","count":2,"health":true})",
        R"({"fault":"slow_head","delay_ms":50})",
        R"({"fault":"status","status":503,"retry_after":7,"body":{"error":1}})",
        R"({"fault":"in_band_error","type":"overloaded"})", R"({"fault":"reset","after_tokens":3})",
        R"({"fault":"no_done","share":0.5})", R"({"fault":"stall"})", R"({"fault":"drip","delay_ms":5,"bytes":3})",
        R"({"fault":"malformed","after_tokens":2})", R"({"fault":"frozen_metrics"})"}) {
    const Control control = read_control(body);
    const auto* fault = std::get_if<Fault>(&control);
    ASSERT_NE(fault, nullptr) << body << refusal(body);
    FaultSet plan(1);
    plan.set(*fault);
    const auto printed = nlohmann::json::parse(print_state({}, plan))["faults"][0];
    const auto given = nlohmann::json::parse(body);
    for (const auto& [name, value] : given.items()) {
      EXPECT_EQ(printed[name], value.is_object() ? nlohmann::json(value.dump()) : value) << body;
    }
  }
  EXPECT_EQ(std::get<ClearFaults>(read_control(R"({"clear":true})")).kind, std::nullopt);
  EXPECT_EQ(std::get<ClearFaults>(read_control(R"({"clear":"drip"})")).kind, FaultKind::drip);
}

TEST(MockControl, ReadsSpeedCapacityAndRestart) {
  const auto tuning = std::get<Tuning>(read_control(R"({"speed":0.25,"slots":3})"));
  EXPECT_EQ(tuning.speed, 0.25);
  EXPECT_EQ(tuning.slots, 3u);
  EXPECT_EQ(std::get<Tuning>(read_control(R"({"slots":3})")).speed, std::nullopt);
  EXPECT_EQ(std::get<Restart>(read_control(R"({"restart":true})")).down_ms, 0u);
  EXPECT_EQ(std::get<Restart>(read_control(R"({"restart":true,"down_ms":70})")).down_ms, 70u);
}

TEST(MockControl, NamesTheWrongFieldAndTheNearestKnownOne) {
  struct Case {
    const char *body, *message;
  };
  const Case cases[] = {
      {"", R"(the body must be a JSON object such as {"fault":"hang"})"},
      {"[]", R"(the body must be a JSON object such as {"fault":"hang"})"},
      {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "the body is nested deeper than 32 levels"},
      {"{}", "fault, clear, speed, slots or restart is missing"},
      {R"({"fault":"hangs"})", R"(unknown fault "hangs"; did you mean "hang"?)"},
      {R"({"fault":"no-done"})", R"(unknown fault "no-done"; did you mean "no_done"?)"},
      {R"({"fault":3})", "fault must be the name of a fault, not 3"},
      {R"({"falt":"hang"})", R"(unknown field "falt"; did you mean "fault"?)"},
      {R"({"fault":"reset","after_token":3})",
       R"(unknown field "after_token" of fault "reset"; did you mean "after_tokens"?)"},
      {R"({"fault":"refuse","count":3})", R"(unknown field "count" of fault "refuse"; it takes none)"},
      {R"({"fault":"reset","after_tokens":-1})", "after_tokens must be a whole number, not -1"},
      {R"({"fault":"status"})", R"(fault "status" needs status)"},
      {R"({"fault":"status","status":200})", "status must be an error status from 400 to 599, not 200"},
      {R"({"fault":"slow_head"})", R"(fault "slow_head" needs delay_ms)"},
      {R"({"fault":"hang","share":1.5})", "share must be a number from 0 to 1, not 1.5"},
      {R"({"fault":"hang","count":0})", "count must be a whole number from 1, not 0"},
      {R"({"fault":"hang","health":1})", "health must be true or false, not 1"},
      {R"({"clear":false})", "clear must be true or the name of a fault, not false"},
      {R"({"clear":"hnag"})", R"(unknown fault "hnag"; did you mean "hang"?)"},
      {R"({"fault":"drip"})", R"(fault "drip" needs delay_ms)"},
      {R"({"fault":"drip","delay_ms":1,"bytes":0})", "bytes must be a whole number from 1 to 1048576, not 0"},
      {R"({"speed":0})", "speed must be a number from 0.001 to 1000, not 0"},
      {R"({"speed":2,"slot":1})", R"(speed and slots may stand together, not with "slot")"},
      {R"({"slots":0})", "slots must be a whole number from 1 to 65536, not 0"},
      {R"({"restart":1})", "restart must be true, not 1"},
      {R"({"restart":true,"down":1})", R"(restart takes down_ms only, not "down")"},
      {R"({"clear":true,"fault":"hang"})", "clear stands alone"},
  };
  for (const Case& c : cases) EXPECT_EQ(refusal(c.body), c.message) << c.body;
}

Fault fault_of(FaultKind kind) {
  Fault fault;
  fault.kind = kind;
  return fault;
}

TEST(MockFaults, ACountIsUsedUp) {
  FaultSet plan(1);
  Fault fault = fault_of(FaultKind::hang);
  fault.count = 2;
  plan.set(fault);
  EXPECT_TRUE(plan.pick(1, false).has_value());
  EXPECT_TRUE(plan.pick(2, false).has_value());
  EXPECT_FALSE(plan.pick(3, false).has_value());
  EXPECT_TRUE(plan.faults().empty());
}

TEST(MockFaults, AShareIsDrawnPerRequestFromTheSeed) {
  const auto hits = [](std::uint64_t seed) {
    FaultSet plan(seed);
    Fault fault = fault_of(FaultKind::stall);
    fault.share = 0.25;
    plan.set(fault);
    std::vector<bool> out;
    for (std::uint64_t request = 0; request < 4000; ++request) out.push_back(plan.pick(request, false).has_value());
    return out;
  };
  const auto first = hits(1);
  EXPECT_EQ(first, hits(1));
  EXPECT_NE(first, hits(2));
  EXPECT_NEAR(static_cast<double>(std::count(first.begin(), first.end(), true)), 1000, 100);
}

TEST(MockFaults, TheFirstThatAppliesIsTaken) {
  FaultSet plan(1);
  Fault once = fault_of(FaultKind::reset);
  once.count = 1;
  plan.set(fault_of(FaultKind::refuse));
  plan.set(once);
  plan.set(fault_of(FaultKind::stall));
  EXPECT_TRUE(plan.has(FaultKind::refuse));
  EXPECT_EQ(plan.pick(1, false)->kind, FaultKind::reset);
  EXPECT_EQ(plan.pick(2, false)->kind, FaultKind::stall);
  EXPECT_FALSE(plan.pick(3, true).has_value());  // none was asked to hit health checks
}

TEST(MockFaults, SettingAKindAgainReplacesIt) {
  FaultSet plan(1);
  Fault fault = fault_of(FaultKind::reset);
  plan.set(fault);
  fault.after_tokens = 9;
  plan.set(fault);
  ASSERT_EQ(plan.faults().size(), 1u);
  EXPECT_EQ(plan.faults()[0].after_tokens, 9u);
}

}  // namespace
}  // namespace headgate::mock
