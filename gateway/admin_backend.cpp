#include "gateway/admin_backend.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "backends/json_nesting.hpp"
#include "policies/base/nearest.hpp"

namespace headgate::gateway {

namespace {

constexpr std::uint32_t weight_max = 1000;
const std::array<std::string, 2> fields{"drained", "weight"};

std::string problem_of(const std::string& field, const nlohmann::json& value, policies::HandSetting& out) {
  const auto wrong = [&](const char* right) { return field + " is " + value.dump() + "; " + right; };
  if (field == "drained") {
    if (!value.is_boolean()) return wrong("true or false is right");
    out.drained = value.get<bool>();
    return {};
  }
  if (field == "weight") {
    const bool count =
        value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 && value.get<std::uint64_t>() <= weight_max;
    if (!count && !value.is_null())
      return wrong("a whole number from 1 to 1000 is right, or null for what the configuration says");
    out.weight = count ? value.get<std::uint32_t>() : 0;
    return {};
  }
  return "There is no field \"" + field + "\"" + suggestion(field, fields);
}

}  // namespace

HandSettingRead read_hand_setting(std::string_view body) {
  constexpr const char* example = R"(; {"drained":true}, {"drained":false} or {"weight":5} is right)";
  HandSettingRead read;
  const auto json = backends::too_deep(body) ? nlohmann::json() : nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) {
    read.problem = std::string("The body is not a JSON object") + example;
    return read;
  }
  for (const auto& [field, value] : json.items()) {
    read.problem = problem_of(field, value, read.setting);
    if (!read.problem.empty()) return read;
  }
  if (json.empty()) read.problem = std::string("The body sets nothing") + example;
  return read;
}

}  // namespace headgate::gateway
