#include "loadtest/sim/faults.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "config/units.hpp"
#include "loadtest/when.hpp"
#include "policies/base/nearest.hpp"

namespace headgate::loadtest {
namespace {

constexpr std::size_t changes_max = 100'000;

struct Written {
  std::optional<Nanos> at, lasts;
  std::string backend, what;
  double factor = 5, share = 1;
  std::uint16_t status = 429;
  Nanos retry_after = std::chrono::seconds(1), every = std::chrono::seconds(2);
  std::set<std::string, std::less<>> parts;  // that are written
};

// The only kind of fault that a part is for.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> only_for{
    {{"factor", "slow"}, {"status", "storm"}, {"retry-after", "storm"}, {"share", "storm"}, {"every", "flap"}}};

Nanos later(Nanos time, Nanos by) { return by > Nanos::max() - time ? Nanos::max() : time + by; }

// Empty, or what the value must be.
std::string read_part(std::string_view name, std::string_view value, Nanos span, Written& out) {
  const auto duration = [&](auto& to, Nanos low) -> std::string {
    const auto time = config::parse_duration(value);
    if (!time || *time < low) return "must be a duration such as 20s";
    to = *time;
    return {};
  };
  if (!out.parts.emplace(name).second) return "is given twice";
  if (name == "at") {
    const auto when = parse_when(value);
    if (when) out.at = when->in(span);
    return when ? "" : "must be a duration such as 60s, or a share of the arrivals' span such as 1/3";
  }
  if (name == "backend" || name == "do") {
    (name == "do" ? out.what : out.backend) = value;
    return {};
  }
  if (name == "for") return duration(out.lasts, Nanos(1));
  if (name == "every") return duration(out.every, std::chrono::milliseconds(1));
  if (name == "retry-after") return duration(out.retry_after, Nanos(0));
  const double number = parse_number(value).value_or(-1);
  if (name == "factor") {
    out.factor = number;
    return number > 0 && number <= 1000 ? "" : "must be a number over 0, at most 1000";
  }
  if (name == "share") {
    out.share = number;
    return number > 0 && number <= 1 ? "" : "must be a number over 0, at most 1";
  }
  if (name == "status") {
    const bool good = number >= 400 && number <= 599 && number == std::floor(number);
    if (good) out.status = static_cast<std::uint16_t>(number);
    return good ? "" : "must be an error status, 400 to 599";
  }
  const std::vector<std::string> known{"at",     "backend",     "do",    "for",  "factor",
                                       "status", "retry-after", "share", "every"};
  return "is no part of a fault" + suggestion(name, known);
}

// Empty, or which part has nothing to do there.
std::string misplaced_part(const Written& fault) {
  for (const auto& [part, what] : only_for) {
    if (fault.what != what && fault.parts.contains(part))
      return std::string(part) + "= is only for do=" + std::string(what);
  }
  if (fault.what == "recover" && fault.lasts) return "for= is not for do=recover";
  return {};
}

std::set<policies::EndpointId> endpoints_of(const std::string& backend, const config::Catalog& catalog) {
  std::set<policies::EndpointId> found;
  const bool all = backend.ends_with("/*");
  for (const auto& target : catalog.targets) {
    if (target == nullptr) continue;
    const bool meant = all ? target->name.starts_with(backend.substr(0, backend.size() - 1)) : target->name == backend;
    if (meant) found.insert(target->endpoint);
  }
  return found;
}

// One change after the other for a single server; `add` takes time and state.
template <class Add>
std::string expand(const Written& fault, Add&& add) {
  ServerState state;
  const Nanos at = *fault.at, end = later(at, fault.lasts.value_or(Nanos(0)));
  if (fault.what == "kill") {
    state.down = true;
  } else if (fault.what == "stall") {
    state.stalled = true;
  } else if (fault.what == "slow") {
    state.slowness = fault.factor;
  } else if (fault.what == "storm") {
    state.status = fault.status;
    state.retry_after = fault.retry_after;
    state.share = fault.share;
  } else if (fault.what == "flap") {
    if (!fault.lasts) return "flap needs for=DURATION";
    if (*fault.lasts / fault.every > 1000) return "flap may change at most 1000 times";
    bool down = true;
    for (Nanos time = at; time < end; time = later(time, fault.every), down = !down) add(time, {.down = down});
  } else if (fault.what != "recover") {
    const std::vector<std::string> known{"kill", "stall", "slow", "storm", "flap", "recover"};
    return "\"" + fault.what + "\" is nothing that a fault can do" + suggestion(fault.what, known);
  }
  if (fault.what != "flap") add(at, state);
  if (fault.lasts) add(end, {});
  return {};
}

std::string parse_one(std::string_view text, const config::Catalog& catalog, Nanos span, std::vector<SimFault>& out) {
  Written fault;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view value = equals == part.size() ? std::string_view() : part.substr(equals + 1);
    const std::string wrong = read_part(part.substr(0, equals), value, span, fault);
    if (!wrong.empty()) return "\"" + std::string(part) + "\" " + wrong;
  }
  if (!fault.at || fault.backend.empty() || fault.what.empty()) {
    return "at=, backend= and do= are needed, as in at=60s;backend=POOL/NAME;do=kill;for=20s";
  }
  const auto endpoints = endpoints_of(fault.backend, catalog);
  if (endpoints.empty()) {
    std::vector<std::string> known;
    for (const auto& target : catalog.targets) {
      if (target != nullptr) known.push_back(target->name);
    }
    return "there is no backend \"" + fault.backend + "\"" + suggestion(fault.backend, known);
  }
  for (const policies::EndpointId endpoint : endpoints) {
    const std::string wrong = expand(fault, [&](Nanos at, const ServerState& state) {
      out.push_back({.at = at, .endpoint = endpoint, .state = state});
    });
    if (!wrong.empty()) return wrong;
  }
  return misplaced_part(fault);
}

}  // namespace

std::vector<SimFault> parse_faults(const std::vector<std::string>& texts, const config::Catalog& catalog, Nanos span,
                                   std::string& problem) {
  std::vector<SimFault> faults;
  for (const std::string& text : texts) {
    const std::string wrong = parse_one(text, catalog, span, faults);
    if (!wrong.empty()) problem = "fault \"" + text + "\": " + wrong;
    if (faults.size() > changes_max) problem = "faults come to more than 100,000 changes";
    if (!problem.empty()) return {};
  }
  std::stable_sort(faults.begin(), faults.end(), [](const SimFault& a, const SimFault& b) { return a.at < b.at; });
  return faults;
}

}  // namespace headgate::loadtest
