#include "backends/mock/control.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "backends/json_nesting.hpp"
#include "policies/base/nearest.hpp"

namespace headgate::mock {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t shown_bytes_max = 60;

// Fields of each fault beside "fault"; the first `required` must be there.
struct Form {
  std::array<std::string_view, 6> names{};
  std::size_t count = 0, required = 0;
  std::span<const std::string_view> fields() const { return {names.data(), count}; }
};

Form form_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::refuse:
    case FaultKind::frozen_metrics:
      return {};
    case FaultKind::hang:
      return {{"health", "count", "share"}, 3, 0};
    case FaultKind::slow_head:
      return {{"delay_ms", "health", "count", "share"}, 4, 1};
    case FaultKind::status:
      return {{"status", "retry_after", "body", "health", "count", "share"}, 6, 1};
    case FaultKind::in_band_error:
      return {{"type", "count", "share"}, 3, 0};
    case FaultKind::drip:
      return {{"delay_ms", "bytes", "after_tokens", "count", "share"}, 5, 1};
    case FaultKind::reset:
    case FaultKind::no_done:
    case FaultKind::stall:
    case FaultKind::malformed:
      return {{"after_tokens", "count", "share"}, 3, 0};
  }
  return {};
}

constexpr std::array<std::string_view, 5> commands{"fault", "clear", "speed", "slots", "restart"};

std::string did_you_mean(std::string_view name, std::span<const std::string_view> known) {
  return suggestion(name, std::vector<std::string>(known.begin(), known.end()));
}

ControlError wrong(std::string_view field, const Json& value, std::string_view wanted) {
  std::string given = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (given.size() > shown_bytes_max) given = given.substr(0, shown_bytes_max) + "...";
  return {std::string(field) + " must be " + std::string(wanted) + ", not " + given, std::string(field)};
}

bool whole(const Json& value, std::uint64_t least, std::uint64_t most) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() >= least && value.get<std::uint64_t>() <= most;
}

// Empty: taken; else what is wrong.
std::optional<ControlError> take_field(const std::string& name, const Json& value, Fault& fault) {
  constexpr std::uint64_t u32 = 0xffffffffu;
  if (name == "after_tokens") {
    if (!whole(value, 0, u32)) return wrong(name, value, "a whole number");
    fault.after_tokens = value.get<std::uint32_t>();
  } else if (name == "delay_ms") {
    if (!whole(value, 0, 3'600'000)) return wrong(name, value, "a whole number of milliseconds up to 3600000");
    fault.delay_ms = value.get<std::uint32_t>();
  } else if (name == "bytes") {
    if (!whole(value, 1, 1 << 20)) return wrong(name, value, "a whole number from 1 to 1048576");
    fault.bytes = value.get<std::uint32_t>();
  } else if (name == "status") {
    if (!whole(value, 400, 599)) return wrong(name, value, "an error status from 400 to 599");
    fault.status = value.get<std::uint16_t>();
  } else if (name == "retry_after") {
    if (!whole(value, 0, u32)) return wrong(name, value, "a whole number of seconds");
    fault.retry_after = value.get<std::uint32_t>();
  } else if (name == "body") {
    fault.content_type = value.is_string() ? "text/plain" : "application/json";
    fault.body = value.is_string() ? value.get<std::string>() : value.dump();
  } else if (name == "type") {
    if (!value.is_string()) return wrong(name, value, "a string such as \"overloaded\"");
    fault.type = value.get<std::string>();
  } else if (name == "health") {
    if (!value.is_boolean()) return wrong(name, value, "true or false");
    fault.health = value.get<bool>();
  } else if (name == "count") {
    if (!whole(value, 1, u32)) return wrong(name, value, "a whole number from 1");
    fault.count = value.get<std::uint32_t>();
  } else if (name == "share") {
    if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > 1) {
      return wrong(name, value, "a number from 0 to 1");
    }
    fault.share = value.get<double>();
  }
  return std::nullopt;
}

Control read_fault(FaultKind kind, const Json& json) {
  Fault fault;
  fault.kind = kind;
  const Form form = form_of(kind);
  for (const auto& [name, value] : json.items()) {
    if (name == "fault") continue;
    const auto fields = form.fields();
    if (std::find(fields.begin(), fields.end(), name) == fields.end()) {
      std::string message = "unknown field \"" + name + "\" of fault \"" + std::string(name_of(kind)) + "\"";
      message += fields.empty() ? "; it takes none" : did_you_mean(name, fields);
      return ControlError{std::move(message), name};
    }
    if (auto problem = take_field(name, value, fault)) return *std::move(problem);
  }
  for (const std::string_view name : form.fields().subspan(0, form.required)) {
    if (!json.contains(name)) {
      return ControlError{"fault \"" + std::string(name_of(kind)) + "\" needs " + std::string(name), std::string(name)};
    }
  }
  return fault;
}

Json print_fault(const Fault& fault) {
  Json out{{"fault", name_of(fault.kind)}};
  switch (fault.kind) {
    case FaultKind::reset:
    case FaultKind::no_done:
    case FaultKind::stall:
    case FaultKind::malformed:
      out["after_tokens"] = fault.after_tokens;
      break;
    case FaultKind::drip:
      out.update({{"delay_ms", fault.delay_ms}, {"bytes", fault.bytes}, {"after_tokens", fault.after_tokens}});
      break;
    case FaultKind::slow_head:
      out["delay_ms"] = fault.delay_ms;
      break;
    case FaultKind::in_band_error:
      out["type"] = fault.type;
      break;
    case FaultKind::status:
      out["status"] = fault.status;
      if (fault.retry_after) out["retry_after"] = *fault.retry_after;
      if (!fault.content_type.empty()) out["body"] = fault.body;
      break;
    default:
      break;
  }
  if (fault.health) out["health"] = true;
  if (fault.count) out["count"] = *fault.count;
  if (fault.share) out["share"] = *fault.share;
  return out;
}

std::optional<FaultKind> kind_named(const Json& name) {
  if (!name.is_string()) return std::nullopt;
  const auto it = std::find(fault_names.begin(), fault_names.end(), name.get<std::string>());
  if (it == fault_names.end()) return std::nullopt;
  return static_cast<FaultKind>(it - fault_names.begin());
}

ControlError unknown_fault(const Json& name, std::string_view field) {
  if (!name.is_string()) return wrong(field, name, "the name of a fault");
  return {"unknown fault \"" + name.get<std::string>() + "\"" + did_you_mean(name.get<std::string>(), fault_names),
          std::string(field)};
}

Control read_clear(const Json& json) {
  if (json.size() != 1) return ControlError{"clear stands alone", "clear"};
  const Json& what = json["clear"];
  if (what == true) return ClearFaults{};
  if (!what.is_string()) return wrong("clear", what, "true or the name of a fault");
  const auto kind = kind_named(what);
  if (!kind) return unknown_fault(what, "clear");
  return ClearFaults{kind};
}

Control read_restart(const Json& json) {
  Restart restart;
  if (json["restart"] != true) return wrong("restart", json["restart"], "true");
  for (const auto& [name, value] : json.items()) {
    if (name == "restart") continue;
    if (name != "down_ms") return ControlError{"restart takes down_ms only, not \"" + name + "\"", name};
    if (!whole(value, 0, 3'600'000)) return wrong(name, value, "a whole number of milliseconds up to 3600000");
    restart.down_ms = value.get<std::uint32_t>();
  }
  return restart;
}

Control read_tuning(const Json& json) {
  Tuning tuning;
  for (const auto& [name, value] : json.items()) {
    if (name == "speed") {
      const double speed = value.is_number() ? value.get<double>() : 0;
      if (!(speed >= 0.001 && speed <= 1000)) return wrong(name, value, "a number from 0.001 to 1000");
      tuning.speed = speed;
    } else if (name == "slots") {
      if (!whole(value, 1, 65536)) return wrong(name, value, "a whole number from 1 to 65536");
      tuning.slots = value.get<std::uint32_t>();
    } else {
      return ControlError{"speed and slots may stand together, not with \"" + name + "\"", name};
    }
  }
  return tuning;
}

}  // namespace

Control read_control(std::string_view body) {
  if (backends::too_deep(body)) return ControlError{"the body is nested deeper than 32 levels", {}};
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return ControlError{"the body must be a JSON object such as {\"fault\":\"hang\"}", {}};
  if (json.contains("clear")) return read_clear(json);
  if (json.contains("restart")) return read_restart(json);
  if (json.contains("fault")) {
    const auto kind = kind_named(json["fault"]);
    return kind ? read_fault(*kind, json) : unknown_fault(json["fault"], "fault");
  }
  if (json.contains("speed") || json.contains("slots")) return read_tuning(json);
  if (json.empty()) return ControlError{"fault, clear, speed, slots or restart is missing", "fault"};
  const std::string& name = json.items().begin().key();
  return ControlError{"unknown field \"" + name + "\"" + did_you_mean(name, commands), name};
}

std::string print_state(const ReplicaState& state, const FaultSet& set) {
  Json faults = Json::array();
  for (const Fault& fault : set.faults()) faults.push_back(print_fault(fault));
  return Json{{"open", state.open},       {"served", state.served},           {"cancelled", state.cancelled},
              {"faulted", state.faulted}, {"connections", state.connections}, {"accepted", state.accepted},
              {"running", state.running}, {"waiting", state.waiting},         {"speed", state.speed},
              {"slots", state.slots},     {"listening", state.listening},     {"faults", std::move(faults)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headgate::mock
