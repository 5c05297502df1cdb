// What streams tell of an endpoint, and how many attempts it may have for that.
#include <algorithm>

#include "policies/dispatcher_state.hpp"
#include "policies/outcome.hpp"

namespace headgate::policies {

// Slow start is for a backend that others can spare meanwhile.
void Dispatcher::State::set_limit(std::uint32_t e) {
  const Endpoint& endpoint = endpoints[e];
  const bool adaptive = endpoint.limit.mode == LimitMode::adaptive;
  std::uint32_t limit = adaptive ? std::min(endpoint.max_in_flight, endpoint.adaptive.limit()) : endpoint.max_in_flight;
  const std::uint32_t tenths = endpoint.health.ramp_tenths();
  if (tenths < 10 && spared(e)) limit = std::max(limit / 10 * tenths + limit % 10 * tenths / 10, 1u);
  loads.set_limit(e, limit);
}

void Dispatcher::State::progress(Time now, std::span<const Progress> list, Orders& orders) {
  advance(now, orders);
  for (const Progress& of : list) {
    if (index(of.endpoint) >= endpoints.size()) continue;
    const auto e = static_cast<std::uint32_t>(index(of.endpoint));
    watch_pace(now, of, orders);
    if (endpoints[e].limit.mode != LimitMode::adaptive) continue;
    if (!endpoints[e].adaptive.gaps(now, of.gaps, of.gap_sum, loads[e].in_flight)) continue;
    set_limit(e);
    refresh(e);
    serve(now, e, orders);
  }
}

// By the first of its pools; endpoints that stand in several are as fast in each.
void Dispatcher::State::watch_pace(Time now, const Progress& of, Orders& orders) {
  const auto e = static_cast<std::uint32_t>(index(of.endpoint));
  Endpoint& endpoint = endpoints[e];
  if (endpoint.places.empty()) return;
  const auto window = endpoint.pace.gaps(now, of.gaps, of.gap_sum, loads[e].in_flight);
  if (!window) return;
  const double slowness = pools[endpoint.places.front().pool].pace.slowness(*window);
  if (!endpoint.pace.judge(slowness, endpoint.health.options().demote_slow && may_demote(e))) return;
  endpoint.health.slow(now, endpoint.pace.slow());
  health_changed(now, e, orders);
}

// Slow is better than nobody: once no other member of a pool is up and well, its slow ones are used as before.
void Dispatcher::State::forgive_slow(Time now, std::uint32_t e, Orders& orders) {
  for (const Endpoint::Place& place : endpoints[e].places) {
    const std::span<const routing::Member> members = pools[place.pool].balancer.members();
    const auto well = [this](const routing::Member& member) {
      return endpoints[member.endpoint].standing.up && !endpoints[member.endpoint].pace.slow();
    };
    if (std::ranges::any_of(members, well)) continue;
    for (const routing::Member& member : members) {
      Endpoint& slow = endpoints[member.endpoint];
      if (!slow.pace.slow()) continue;
      slow.pace.forgive();
      slow.health.slow(now, false);
      health_changed(now, member.endpoint, orders);
    }
  }
}

void Dispatcher::State::learn_of_limit(const Record& record, const Outcome& outcome, Time now) {
  AdaptiveLimit& adaptive = endpoints[record.endpoint].adaptive;
  adaptive.attempted();
  if (fault_of(outcome) == Fault::load) adaptive.overloaded();
  if (!record.stream || !record.committed || !succeeded(outcome) || outcome.output_tokens < 2) return;
  adaptive.answered(record.content_at, (now - record.content_at) / (outcome.output_tokens - 1));
}

}  // namespace headgate::policies
