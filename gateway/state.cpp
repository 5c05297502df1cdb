#include "gateway/state.hpp"

#include <algorithm>

#include "config/address.hpp"
#include "gateway/json_text.hpp"

namespace headgate::gateway {
namespace {

using policies::EndpointState;
using policies::HealthState;

void text(std::string& out, std::string_view key, std::string_view value) {
  out += key;
  append_quoted(out, value);
}

template <std::integral T>
void number(std::string& out, std::string_view key, T value) {
  out += key;
  append_number(out, value);
}

// Milliseconds until an endpoint that is out by time comes back; 0 for one that is in, or down until a probe succeeds.
std::int64_t out_for_ms(const EndpointState& endpoint, Time now) {
  const bool timed = endpoint.health == HealthState::cooling || endpoint.health == HealthState::ejected;
  if (!timed || endpoint.out_until <= now) return 0;
  return std::chrono::ceil<std::chrono::milliseconds>(endpoint.out_until - now).count();
}

void append_figures(std::string& out, const EndpointState& endpoint, Time now) {
  text(out, ",\"health\":", name_of(endpoint.health));
  out += endpoint.drained ? ",\"drained\":true" : ",\"drained\":false";
  number(out, ",\"weight_by_hand\":", endpoint.hand_weight);
  number(out, ",\"in_flight\":", endpoint.in_flight);
  number(out, ",\"max_in_flight\":", endpoint.max_in_flight);
  number(out, ",\"prefill_tokens\":", endpoint.prefill_tokens);
  if (endpoint.mean_gap > Nanos{0})
    number(out, ",\"mean_gap_us\":", static_cast<std::uint64_t>(endpoint.mean_gap / std::chrono::microseconds(1)));
  number(out, ",\"attempts\":", endpoint.attempts_total);
  number(out, ",\"failures\":", endpoint.failures_total);
  number(out, ",\"probe_failures\":", endpoint.probe_failures_total);
  number(out, ",\"health_changes\":", endpoint.health_changes_total);
  number(out, ",\"out_for_ms\":", out_for_ms(endpoint, now));
}

const EndpointState* find(const policies::Snapshot& snapshot, policies::EndpointId id) {
  const auto& all = snapshot.endpoints;
  const auto found = std::find_if(all.begin(), all.end(), [id](const EndpointState& e) { return e.id == id; });
  return found == all.end() ? nullptr : &*found;
}

void append_backends(std::string& out, const StateView& view) {
  std::string_view comma;
  const auto open = [&](std::string_view name) {
    out += comma;
    comma = ",";
    text(out, "{\"name\":", name);
  };
  for (const auto& target : view.catalog.targets) {
    if (!target) continue;
    const EndpointState* endpoint = find(view.snapshot, target->endpoint);
    if (endpoint == nullptr) continue;
    open(target->name);
    text(out, ",\"pool\":", target->pool);
    text(out, ",\"endpoint\":", config::host_port({target->host, target->port, target->tls != nullptr}));
    append_figures(out, *endpoint, view.now);
    out += ",\"removed\":false}";
  }
  for (const EndpointState& endpoint : view.snapshot.endpoints) {
    if (endpoint.planned) continue;
    open(view.names.endpoint(endpoint.id));
    out += ",\"pool\":\"\",\"endpoint\":\"\"";
    append_figures(out, endpoint, view.now);
    out += ",\"removed\":true}";
  }
}

void append_pools(std::string& out, const StateView& view) {
  std::string_view comma;
  for (const policies::PoolState& pool : view.snapshot.pools) {
    out += comma;
    comma = ",";
    text(out, "{\"name\":", view.names.pool(pool.id));
    number(out, ",\"queued\":", pool.queued);
    number(out, ",\"queued_bytes\":", pool.queued_bytes);
    out += ",\"drain_per_s\":";
    append_double(out, pool.drain_per_s);
    out += ",\"queued_by_class\":{";
    for (std::size_t c = 0; c < policies::classes_n; ++c) {
      out.append(c == 0 ? "\"" : ",\"").append(policies::class_names[c]).append("\":");
      append_number(out, pool.queued_by_class[c]);
    }
    out += "}}";
  }
}

void append_routes(std::string& out, const StateView& view) {
  std::string_view comma;
  for (const policies::RouteState& route : view.snapshot.routes) {
    out += comma;
    comma = ",";
    text(out, "{\"name\":", view.names.route(route.id));
    out += ",\"retry_credit\":";
    append_double(out, route.retry_credit);
    out += '}';
  }
}

// Those who have requests, up to so many.
void append_tenants(std::string& out, const StateView& view) {
  constexpr std::size_t most = 1000;
  const auto& tenants = view.snapshot.tenants;
  for (std::size_t i = 0; i < std::min(tenants.size(), most); ++i) {
    if (i > 0) out += ',';
    text(out, "{\"name\":", view.names.tenant(tenants[i].id));
    number(out, ",\"requests\":", tenants[i].requests);
    if (const auto& rate = tenants[i].rates.requests; rate.limit > 0)
      number(out, ",\"requests_left\":", rate.remaining);
    if (const auto& rate = tenants[i].rates.tokens; rate.limit > 0) number(out, ",\"tokens_left\":", rate.remaining);
    out += '}';
  }
}

}  // namespace

std::string_view name_of(HealthState health) {
  switch (health) {
    case HealthState::up:
      return "up";
    case HealthState::cooling:
      return "cooling";
    case HealthState::ejected:
      return "ejected";
    case HealthState::half_open:
      return "half_open";
    case HealthState::down:
      return "down";
    case HealthState::slow:
      return "slow";
  }
  return "";
}

std::string render_state(const StateView& view) {
  std::string out;
  number(out, "{\"version\":", view.catalog.version);
  out += view.draining ? ",\"draining\":true" : ",\"draining\":false";
  out += ",\"uptime_s\":";
  append_thousandths(out, std::chrono::duration_cast<std::chrono::milliseconds>(view.uptime).count());
  number(out, ",\"requests\":", view.snapshot.requests);
  number(out, ",\"waiting\":", view.snapshot.waiting);
  out += ",\"backends\":[";
  append_backends(out, view);
  out += "],\"pools\":[";
  append_pools(out, view);
  out += "],\"tenants\":[";
  append_tenants(out, view);
  out += "],\"routes\":[";
  append_routes(out, view);
  number(out, "],\"reload\":{\"version\":", view.catalog.version);
  number(out, ",\"failed\":", view.reloads_failed);
  text(out, ",\"last_problem\":", view.last_problem);
  out += "}}";
  return out;
}

}  // namespace headgate::gateway
