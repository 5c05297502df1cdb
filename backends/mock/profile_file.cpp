#include "backends/mock/profile_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "backends/json_nesting.hpp"
#include "backends/text_file.hpp"
#include "policies/base/nearest.hpp"

namespace headgate::mock {
namespace {

using engine::Profile;
using Json = nlohmann::ordered_json;

struct TimeField {
  std::string_view name;
  Nanos Profile::*field;
};
constexpr std::array<TimeField, 5> times{{{"overhead_us", &Profile::overhead},
                                          {"step_fixed_us", &Profile::step_fixed},
                                          {"step_per_running_us", &Profile::step_per_running},
                                          {"step_per_context_token_us", &Profile::step_per_context_token},
                                          {"prefill_per_token_us", &Profile::prefill_per_token}}};
constexpr double time_max_us = 60e6;
constexpr std::size_t profile_bytes_max = 1 << 20;

struct CountField {
  std::string_view name;
  std::uint32_t Profile::*field;
  std::uint32_t least, most;
};
constexpr std::array<CountField, 5> counts{{{"slots", &Profile::slots, 1, 65536},
                                            {"queue_max", &Profile::queue_max, 0, 1'000'000},
                                            {"batched_tokens_max", &Profile::batched_tokens_max, 1, 1 << 24},
                                            {"block_tokens", &Profile::block_tokens, 1, 65536},
                                            {"blocks", &Profile::blocks, 1, 1 << 24}}};

std::vector<std::string> built_in() {
  std::vector<std::string> names;
  for (const Profile& profile : engine::profiles()) names.push_back(profile.name);
  return names;
}

std::string wrong(const std::string& name, const Json& value, const std::string& wanted) {
  return name + " must be " + wanted + ", not " +
         value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60);
}

// Empty: taken; else what is wrong.
std::string take(const std::string& name, const Json& value, Profile& profile) {
  for (const TimeField& time : times) {
    if (name != time.name) continue;
    const double us = value.is_number() ? value.get<double>() : -1;
    if (!(us >= 0 && us <= time_max_us)) return wrong(name, value, "a number of microseconds from 0 to 60000000");
    profile.*time.field = Nanos(std::llround(us * 1000));
    return {};
  }
  for (const CountField& count : counts) {
    if (name != count.name) continue;
    const bool good = value.is_number_unsigned() && value.get<std::uint64_t>() >= count.least &&
                      value.get<std::uint64_t>() <= count.most;
    if (!good) {
      return wrong(name, value,
                   "a whole number from " + std::to_string(count.least) + " to " + std::to_string(count.most));
    }
    profile.*count.field = value.get<std::uint32_t>();
    return {};
  }
  std::vector<std::string> known{"base"};
  for (const TimeField& time : times) known.emplace_back(time.name);
  for (const CountField& count : counts) known.emplace_back(count.name);
  return "unknown field \"" + name + "\"" + suggestion(name, known);
}

}  // namespace

std::optional<Profile> read_profile(const std::string& text, std::string& problem) {
  if (backends::too_deep(text)) {
    problem = "nested deeper than 32 levels";
    return std::nullopt;
  }
  Json json;
  try {
    json = Json::parse(text, nullptr, true, true);
  } catch (const Json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    problem = "line " + std::to_string(1 + std::count(text.begin(), end, '\n')) + ": this is no JSON";
    return std::nullopt;
  } catch (const Json::exception&) {  // 1e400
    problem = "a number is out of range";
    return std::nullopt;
  }
  if (!json.is_object()) {
    problem = "a JSON object is wanted";
    return std::nullopt;
  }
  Profile profile;
  if (const auto base = json.find("base"); base != json.end()) {
    const std::string name = base->is_string() ? base->get<std::string>() : base->dump();
    const Profile* found = engine::find_profile(name);
    if (found == nullptr) problem = "base is \"" + name + "\", no profile" + suggestion(name, built_in());
    if (found != nullptr && !found->paced) problem = "base is \"" + name + "\", which takes no time";
    if (!problem.empty()) return std::nullopt;
    profile = *found;
  }
  for (const auto& [name, value] : json.items()) {
    if (name != "base") problem = take(name, value, profile);
    if (!problem.empty()) return std::nullopt;
  }
  if (profile.step_fixed == Nanos(0)) {
    problem = "step_fixed_us is missing or under 0.001; a step takes some time";
    return std::nullopt;
  }
  return profile;
}

std::optional<Profile> load_profile(const std::string& name, std::string& problem) {
  if (const Profile* profile = engine::find_profile(name)) return *profile;
  std::string unread;
  const auto text = backends::read_text_file(name, profile_bytes_max, unread);
  if (!text) {
    problem = "profile \"" + name + "\" is unknown, and as a file it " + unread + suggestion(name, built_in());
    return std::nullopt;
  }
  auto profile = read_profile(*text, problem);
  if (profile) profile->name = name;
  if (!profile) problem = "profile " + name + ": " + problem;
  return profile;
}

}  // namespace headgate::mock
