// Endpoints going out of use and coming back, as their pools see it.
#include <algorithm>

#include "policies/dispatcher_state.hpp"

namespace headgate::policies {
namespace {

// Counters of members by standing change by at most one a member.
void move(std::uint32_t& count, bool was, bool is) {
  count += static_cast<std::uint32_t>(is) - static_cast<std::uint32_t>(was);
}

}  // namespace

void Dispatcher::State::refresh(std::uint32_t e) {
  Endpoint& endpoint = endpoints[e];
  const Health& health = endpoint.health;
  const bool used = endpoint.planned && !endpoint.drained;
  Standing now;
  now.up = used && health.in_rotation();
  now.eligible = now.up || (used && health.half_open_free());
  now.hopeful = used && health.hopeful();
  now.ejected = used && health.ejected();
  now.open =
      now.eligible && !health.held_back() && loads[e].free() && endpoint.prefill_tokens < endpoint.limit.prefill_max();
  const Standing was = endpoint.standing;
  if (now == was) return;
  endpoint.standing = now;
  for (const Endpoint::Place& place : endpoint.places) {
    Pool& pool = pools[place.pool];
    pool.balancer.set_open(place.position, now.open);
    move(pool.up, was.up, now.up);
    move(pool.eligible, was.eligible, now.eligible);
    move(pool.hopeful, was.hopeful, now.hopeful);
    move(pool.ejected, was.ejected, now.ejected);
  }
}

void Dispatcher::State::set_alarm(std::uint32_t e) {
  const Time due = endpoints[e].health.due();
  if (due == endpoints[e].due) return;
  endpoints[e].due = due;
  endpoint_alarms.set(e, due);
}

void Dispatcher::State::health_changed(Time now, std::uint32_t e, Orders& orders) {
  const Standing before = endpoints[e].standing;
  set_limit(e);
  refresh(e);
  set_alarm(e);
  if (lost(before, endpoints[e].standing)) forgive_slow(now, e, orders);
  if (lost(before, endpoints[e].standing)) reconsider_waiting(now, e, orders);
  serve(now, e, orders);
}

void Dispatcher::State::set_by_hand(Time now, std::uint32_t e, const HandSetting& setting, Orders& orders) {
  Endpoint& endpoint = endpoints[e];
  endpoint.drained = setting.drained.value_or(endpoint.drained);
  endpoint.hand_weight = setting.weight.value_or(endpoint.hand_weight);
  apply_weight(e);
  health_changed(now, e, orders);
}

void Dispatcher::State::apply_weight(std::uint32_t e) {
  const Endpoint& endpoint = endpoints[e];
  for (const Endpoint::Place& place : endpoint.places) {
    pools[place.pool].balancer.set_hand_weight(place.position, endpoint.hand_weight);
  }
}

// New requests have tried nothing: they are concerned only when a pool has nothing left. Whoever is started or answered
// leaves its queues, nobody else does.
void Dispatcher::State::reconsider_waiting(Time now, std::uint32_t e, Orders& orders) {
  for (const Endpoint::Place& place : endpoints[e].places) {
    const Pool& pool = pools[place.pool];
    places.clear();
    for (const Lane lane : lanes) {
      if (!is_new(lane) || pool.hopeful == 0) tickets.all(pool.queue, lane, places);
    }
    for (const std::uint32_t at : places) reconsider(now, Tickets::slot_of(at), orders);
  }
}

// At most half of each pool it stands in, and never the last one up.
bool Dispatcher::State::may_eject(std::uint32_t e) const {
  const Endpoint& endpoint = endpoints[e];
  return std::all_of(endpoint.places.begin(), endpoint.places.end(), [&](const Endpoint::Place& place) {
    const Pool& pool = pools[place.pool];
    const auto own = static_cast<std::uint32_t>(
        std::count_if(endpoint.places.begin(), endpoint.places.end(), [&](auto& p) { return p.pool == place.pool; }));
    const std::uint32_t ejected = pool.ejected + (endpoint.standing.ejected ? 0 : own);
    const std::uint32_t others_up = pool.up - (endpoint.standing.up ? own : 0);
    return std::size_t{ejected} * 2 <= pool.balancer.members().size() && others_up > 0;
  });
}

// Likewise, of those that are up and not slow.
bool Dispatcher::State::may_demote(std::uint32_t e) const {
  const Endpoint& endpoint = endpoints[e];
  return std::ranges::all_of(endpoint.places, [&](const Endpoint::Place& place) {
    const std::span<const routing::Member> members = pools[place.pool].balancer.members();
    const auto well = std::ranges::count_if(members, [&](const routing::Member& member) {
      const Endpoint& other = endpoints[member.endpoint];
      return member.endpoint != e && other.standing.up && !other.pace.slow();
    });
    return static_cast<std::size_t>(well) * 2 >= members.size();
  });
}

bool Dispatcher::State::spared(std::uint32_t e) const {
  return std::ranges::all_of(endpoints[e].places,
                             [&](const Endpoint::Place& place) { return others_healthy(e, place.pool); });
}

// At least half of the pool is up without it.
bool Dispatcher::State::others_healthy(std::uint32_t e, std::uint32_t p) const {
  const Endpoint& endpoint = endpoints[e];
  const auto own = static_cast<std::uint32_t>(
      std::count_if(endpoint.places.begin(), endpoint.places.end(), [&](auto& place) { return place.pool == p; }));
  const std::uint32_t others_up = pools[p].up - (endpoint.standing.up ? own : 0);
  return others_up > 0 && std::size_t{others_up} * 2 >= pools[p].balancer.members().size();
}

// The soonest that one of the endpoints it may use may be tried again. A probe may bring one back from down, or not:
// without `probes_count` only the ends of cooldowns and ejections are looked at.
Time Dispatcher::State::returns_at(Time now, const Record& record, bool probes_count) const {
  Time soonest = never;
  for (const std::uint32_t p : record.pools()) {
    for (const routing::Member& member : pools[p].balancer.members()) {
      const Health& health = endpoints[member.endpoint].health;
      if (endpoints[member.endpoint].drained) continue;
      if (!probes_count && health.state() == HealthState::down) continue;
      soonest = std::min(soonest, after(now, health.returns_in(now)));
    }
  }
  return soonest;
}

}  // namespace headgate::policies
