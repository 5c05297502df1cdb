// The body of POST /admin/backends/{pool}/{backend}: {"drained": true or false, "weight": 1..1000, or null for the
// file's}, either or both.
#pragma once

#include <string>
#include <string_view>

#include "policies/dispatcher.hpp"

namespace headgate::gateway {

struct HandSettingRead {
  policies::HandSetting setting;
  std::string problem;  // empty: none; names the field, its value and what would be right
};

HandSettingRead read_hand_setting(std::string_view body);

}  // namespace headgate::gateway
