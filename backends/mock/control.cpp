#include "backends/mock/control.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

namespace headgate::mock {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<FaultKind, 8> kinds{FaultKind::refuse,        FaultKind::hang,  FaultKind::slow_head,
                                         FaultKind::status,        FaultKind::reset, FaultKind::no_done,
                                         FaultKind::in_band_error, FaultKind::stall};

// Fields of each fault beside "fault"; the first `required` must be there.
struct Form {
  std::array<std::string_view, 6> names{};
  std::size_t count = 0, required = 0;
  std::span<const std::string_view> fields() const { return {names.data(), count}; }
};

Form form_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::refuse:
      return {};
    case FaultKind::hang:
      return {{"health", "count", "share"}, 3, 0};
    case FaultKind::slow_head:
      return {{"delay_ms", "health", "count", "share"}, 4, 1};
    case FaultKind::status:
      return {{"status", "retry_after", "body", "health", "count", "share"}, 6, 1};
    case FaultKind::in_band_error:
      return {{"type", "count", "share"}, 3, 0};
    default:
      return {{"after_tokens", "count", "share"}, 3, 0};
  }
}

constexpr std::array<std::string_view, 10> all_fields{"fault",       "clear", "after_tokens", "delay_ms", "status",
                                                      "retry_after", "body",  "type",         "health",   "count"};

// Levenshtein: insertions, deletions and substitutions.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

std::string nearest(std::string_view name, std::span<const std::string_view> known) {
  const auto best = std::min_element(known.begin(), known.end(), [name](std::string_view a, std::string_view b) {
    return edit_distance(name.substr(0, 64), a) < edit_distance(name.substr(0, 64), b);
  });
  return std::string(*best);
}

ControlError wrong(std::string_view field, const Json& value, std::string_view wanted) {
  std::string given = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (given.size() > 60) given = given.substr(0, 60) + "...";
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
      std::string message = "unknown field \"" + name + "\" of fault \"" + std::string(name_of(kind)) + "\"; ";
      message += fields.empty() ? "it takes none" : "did you mean \"" + nearest(name, fields) + "\"?";
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
      out["after_tokens"] = fault.after_tokens;
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

}  // namespace

Control read_control(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return ControlError{"the body must be a JSON object such as {\"fault\":\"hang\"}", {}};
  if (json.contains("clear")) {
    if (json.size() != 1) return ControlError{"clear stands alone", "clear"};
    if (json["clear"] != true) return wrong("clear", json["clear"], "true");
    return ClearFaults{};
  }
  if (!json.contains("fault")) {
    if (json.empty()) return ControlError{"fault or clear is missing", "fault"};
    const std::string& name = json.items().begin().key();
    return ControlError{"unknown field \"" + name + "\"; did you mean \"" + nearest(name, all_fields) + "\"?", name};
  }
  if (!json["fault"].is_string()) return wrong("fault", json["fault"], "the name of a fault");
  const auto name = json["fault"].get<std::string>();
  std::array<std::string_view, kinds.size()> names;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    names[i] = name_of(kinds[i]);
    if (name == names[i]) return read_fault(kinds[i], json);
  }
  return ControlError{"unknown fault \"" + name + "\"; did you mean \"" + nearest(name, names) + "\"?", "fault"};
}

std::string print_state(const ReplicaState& state, const FaultPlan& plan) {
  Json faults = Json::array();
  for (const Fault& fault : plan.faults()) faults.push_back(print_fault(fault));
  return Json{{"open", state.open},         {"served", state.served},           {"cancelled", state.cancelled},
              {"faulted", state.faulted},   {"connections", state.connections}, {"accepted", state.accepted},
              {"running", state.running},   {"waiting", state.waiting},         {"listening", state.listening},
              {"faults", std::move(faults)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headgate::mock
