// Values of the options as JSON, as the file would write them: durations and sizes with units, enums by name, secrets
// as
// ***. What is unset and has no default of its own is left out.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "config/field.hpp"
#include "config/options.hpp"
#include "config/units.hpp"

namespace headgate::config {

using Json = nlohmann::ordered_json;

template <class T>
bool is_unset(const T& value) {
  if constexpr (Optional<T>) {
    return !value.has_value();
  } else if constexpr (requires { value.empty(); }) {
    return value.empty();
  } else {
    return false;
  }
}

template <class T, class Rule>
Json json_of(const T& value, const Rule& rule) {
  if constexpr (Optional<T>) {
    return value ? json_of(*value, rule) : Json(nullptr);
  } else if constexpr (Vector<T>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(json_of(item, rule.each));
    return list;
  } else if constexpr (Map<T>) {
    Json object = Json::object();
    for (const auto& [name, entry] : value) object[name] = json_of(entry, Any{});
    return object;
  } else if constexpr (Described<T>) {
    Json object = Json::object();
    each_field<T>([&](const auto& field) {
      const auto& member = value.*field.member;
      if (field.absent != nullptr && is_unset(member)) return;
      object[field.name] = json_of(member, field.rule);
    });
    return object;
  } else if constexpr (NamedEnum<T>) {
    return name_of(value);
  } else if constexpr (std::is_same_v<T, Secret>) {
    return value.empty() ? "" : "***";
  } else if constexpr (std::is_same_v<T, Nanos>) {
    return format_duration(value);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return format_size(value);
  } else if constexpr (std::is_same_v<Rule, Range<Bytes>>) {
    return format_size(Bytes{value});
  } else {
    return value;
  }
}

}  // namespace headgate::config
