#include "gateway/admin_backend.hpp"

#include <gtest/gtest.h>

namespace headgate::gateway {
namespace {

TEST(HandSetting, TakesWhatIsGivenAndLeavesTheRest) {
  struct Row {
    const char* body;
    std::optional<bool> drained;
    std::optional<std::uint32_t> weight;
  };
  const Row table[] = {
      {R"({"drained":true})", true, {}}, {R"({"drained":false})", false, {}},
      {R"({"weight":1})", {}, 1},        {R"({"weight":1000,"drained":true})", true, 1000},
      {R"({"weight":null})", {}, 0},
  };
  for (const Row& row : table) {
    const HandSettingRead read = read_hand_setting(row.body);
    EXPECT_EQ(read.problem, "") << row.body;
    EXPECT_EQ(read.setting.drained, row.drained) << row.body;
    EXPECT_EQ(read.setting.weight, row.weight) << row.body;
  }
}

TEST(HandSetting, SaysWhatIsWrongAndWhatWouldBeRight) {
  const std::pair<const char*, const char*> table[] = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"{}", "sets nothing"},
      {R"({"drained":1})", "drained is 1; true or false"},
      {R"({"weight":0})", "weight is 0; a whole number from 1 to 1000"},
      {R"({"weight":1001})", "weight is 1001;"},
      {R"({"weight":1.5})", "weight is 1.5;"},
      {R"({"weight":-1})", "weight is -1;"},
      {R"({"drain":true})", "did you mean \"drained\"?"},
      {R"({"url":"http://127.0.0.1:1"})", "There is no field \"url\""},
  };
  for (const auto& [body, part] : table) {
    EXPECT_NE(read_hand_setting(body).problem.find(part), std::string::npos)
        << body << ": " << read_hand_setting(body).problem;
  }
}

}  // namespace
}  // namespace headgate::gateway
