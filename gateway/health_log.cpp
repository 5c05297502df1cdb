#include "gateway/health_log.hpp"

#include <algorithm>

namespace headgate::gateway {
namespace {

using policies::HealthState;

std::string why_out(const policies::EndpointState& endpoint, Time now) {
  const Nanos left = std::max(endpoint.out_until - now, Nanos(0));
  const std::string span = std::to_string(std::chrono::ceil<std::chrono::seconds>(left).count()) + " s";
  switch (endpoint.health) {
    case HealthState::cooling:
      return "cools down for another " + span + ", as it asked";
    case HealthState::ejected:
      return "is out for another " + span + " after failures in a row";
    case HealthState::half_open:
      return "is tried with one request at a time";
    default:
      return "is out until its probes succeed";
  }
}

}  // namespace

std::vector<HealthLog::Line> HealthLog::compare(Time now, const policies::Snapshot& snapshot, const NameBook& names) {
  std::vector<Line> lines;
  for (const policies::EndpointState& endpoint : snapshot.endpoints) {
    const std::size_t at = policies::index(endpoint.id);
    const std::string_view name = names.endpoint(endpoint.id);
    if (name.empty() || !endpoint.planned) continue;
    if (at >= seen_.size()) seen_.resize(at + 1);
    Seen& seen = seen_[at];
    const bool up = endpoint.health == HealthState::up, was_up = seen.up;
    const bool moved = endpoint.health_changes_total != seen.changes;
    seen = {up, endpoint.health_changes_total};
    const std::string backend = std::string("backend ").append(name).append(" ");
    if (!up && (was_up || moved)) {
      lines.push_back({true, backend + why_out(endpoint, now)});
    } else if (up && !was_up) {
      lines.push_back({false, backend + "is back"});
    } else if (up && moved) {
      lines.push_back({true, backend + "was out for a moment and is back"});
    }
  }
  return lines;
}

}  // namespace headgate::gateway
