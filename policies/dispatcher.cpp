#include "policies/dispatcher.hpp"

#include <algorithm>
#include <utility>

#include "policies/base/image.hpp"
#include "policies/dispatcher_state.hpp"

namespace headgate::policies {

Dispatcher::Dispatcher(Plan plan) : state_(std::make_unique<State>()) {
  state_->adopt(plan);
  state_->count_standings();
}

Dispatcher::~Dispatcher() = default;

RequestId Dispatcher::arrive(Time now, const Arrival& arrival, Orders& orders) {
  return state_->arrive(now, arrival, orders);
}

std::optional<Answer> Dispatcher::turn_away(Time now, const Arrival& arrival, Orders& orders) {
  return state_->turn_away(now, arrival, orders);
}

void Dispatcher::first_token(Time now, AttemptId attempt, Orders& orders) { state_->first_token(now, attempt, orders); }

void Dispatcher::ended(Time now, AttemptId attempt, const Outcome& outcome, Orders& orders) {
  state_->ended(now, attempt, outcome, orders);
}

void Dispatcher::progress(Time now, std::span<const Progress> list, Orders& orders) {
  state_->progress(now, list, orders);
}

void Dispatcher::caller_gone(Time now, RequestId request, Orders& orders) { state_->caller_gone(now, request, orders); }

void Dispatcher::probed(Time now, EndpointId endpoint, const ProbeResult& result, Orders& orders) {
  state_->advance(now, orders);
  if (index(endpoint) >= state_->endpoints.size()) return;
  const auto e = static_cast<std::uint32_t>(index(endpoint));
  state_->endpoints[e].health.probed(now, result.ok);
  state_->health_changed(now, e, orders);
}

void Dispatcher::set_by_hand(Time now, EndpointId endpoint, const HandSetting& setting, Orders& orders) {
  state_->advance(now, orders);
  if (index(endpoint) >= state_->endpoints.size()) return;
  state_->set_by_hand(now, static_cast<std::uint32_t>(index(endpoint)), setting, orders);
}

void Dispatcher::replan(Time now, Plan plan, Orders& orders) { state_->replan(now, std::move(plan), orders); }

void Dispatcher::tick(Time now, Orders& orders) { state_->advance(now, orders); }

Time Dispatcher::next_wake() const {
  return std::min(state_->request_alarms.soonest(), state_->endpoint_alarms.soonest());
}

void Dispatcher::snapshot(Snapshot& out) const {
  const State& state = *state_;
  out.endpoints.clear();
  out.pools.clear();
  out.routes.clear();
  out.tenants.clear();
  for (std::uint32_t e = 0; e < state.endpoints.size(); ++e) {
    const Endpoint& endpoint = state.endpoints[e];
    const InFlight::Load& load = state.loads[e];
    if (!endpoint.planned && load.in_flight == 0) continue;
    const Health& health = endpoint.health;
    out.endpoints.push_back({.id = EndpointId{e},
                             .planned = endpoint.planned,
                             .drained = endpoint.drained,
                             .hand_weight = endpoint.hand_weight,
                             .health = health.state(),
                             .in_flight = load.in_flight,
                             .max_in_flight = load.limit,
                             .prefill_tokens = endpoint.prefill_tokens,
                             .prefill_tokens_max = endpoint.limit.prefill_max(),
                             .mean_gap = endpoint.adaptive.mean_gap(),
                             .attempts_total = endpoint.attempts,
                             .failures_total = endpoint.failures,
                             .successes_total = endpoint.successes,
                             .probe_failures_total = health.probe_failures(),
                             .health_changes_total = health.changes(),
                             .ejections_total = health.ejections(),
                             .out_until = health.out_until()});
  }
  for (std::uint32_t p = 0; p < state.pools.size(); ++p) {
    const Pool& pool = state.pools[p];
    if (!pool.planned) continue;
    PoolState shown{PoolId{p}, pool.queue.queued(), pool.queue.bytes(), pool.forecast.release_rate(state.clock)};
    for (std::size_t c = 0; c < classes_n; ++c)
      shown.queued_by_class[c] = pool.queue.fair().queued(static_cast<Class>(c));
    out.pools.push_back(shown);
  }
  for (std::uint32_t r = 0; r < state.routes.size(); ++r) {
    if (state.routes[r].planned) out.routes.push_back({RouteId{r}, state.routes[r].retry_budget.credit()});
  }
  for (std::uint32_t t = 0; t < state.tenants.size(); ++t) {
    const Tenant& tenant = state.tenants[t];
    if (tenant.open() > 0) out.tenants.push_back({TenantId{t}, tenant.open(), tenant.rates(state.clock)});
  }
  out.requests = state.records.in_use();
  out.waiting = state.waiting;
}

std::string Dispatcher::image() const {
  std::string bytes;
  ImageWriter writer(bytes);
  writer(*state_);
  return bytes;
}

bool Dispatcher::restore(std::string_view image) {
  auto state = std::make_unique<State>();
  ImageReader reader(image);
  reader(*state);
  if (!reader.complete()) return false;
  state_ = std::move(state);
  return true;
}

RateState Dispatcher::rates(Time now, TenantId tenant) const {
  return state_->tenants[state_->known_tenant(tenant)].rates(now);
}

bool Dispatcher::servable(Time now, RouteId route) const {
  const State& state = *state_;
  if (index(route) >= state.routes.size() || !state.routes[index(route)].planned) return false;
  for (const std::uint32_t p : state.routes[index(route)].pools) {
    for (const routing::Member& member : state.pools[p].balancer.members()) {
      const Endpoint& endpoint = state.endpoints[member.endpoint];
      if (!endpoint.drained && endpoint.health.would_be_usable(now)) return true;
    }
  }
  return false;
}

}  // namespace headgate::policies
