// Choosing a backend and starting an attempt there.
#include <algorithm>

#include "policies/dispatcher_state.hpp"

namespace headgate::policies {

std::uint64_t Dispatcher::State::bits(const Record& record, Use use) const {
  return draw(seed, Records::serial(record.id), static_cast<std::uint64_t>(use) << 8 | record.attempts);
}

RequestId Dispatcher::State::arrive(Time now, const Arrival& arrival, Orders& orders) {
  advance(now, orders);
  const std::uint32_t slot = records.take();
  if (slot == Records::none) {
    orders.push_back({arrival.owner, RequestId::none,
                      Answer{Code::queue_full, 1s, !arrival.repeat, Records::slots_max, Records::slots_max}});
    return RequestId::none;
  }
  tickets.grow(records.slots());
  Record& record = records[slot];
  const RequestId id = record.id;
  record.owner = arrival.owner;
  record.route = static_cast<std::uint32_t>(index(arrival.route));
  record.stream = arrival.stream;
  record.repeat = arrival.repeat;
  record.body_bytes = arrival.body_bytes;
  record.raw_prompt_tokens = arrival.prompt_tokens;
  record.choices = arrival.choices;
  record.tenant = known_tenant(arrival.tenant);
  record.klass = class_of(arrival);
  record.received = arrival.received;
  record.idle_within = arrival.stream ? arrival.idle_within : Nanos::max();
  if (record.route >= routes.size() || routes[record.route].gone()) {
    answer(slot, {.code = Code::model_not_found}, orders);
    return id;
  }
  const Route& route = routes[record.route];
  record.estimate = route.estimator.estimate(arrival.prompt_tokens, arrival.max_output_tokens, arrival.choices,
                                             route.default_max_tokens);
  record.output_most = arrival.max_output_tokens != 0 ? arrival.max_output_tokens : record.estimate.output_q90;
  record.reserved_tokens = std::uint64_t{record.estimate.input} + record.estimate.output_q90;
  if (const auto no = over_limits(now, record, bits(record, Use::advice))) {
    answer(slot, *no, orders);
    return id;
  }
  tenants[record.tenant].take(now, record.reserved_tokens);
  record.taken = true;
  const BudgetOptions& budget = classes[static_cast<std::size_t>(record.klass)].budget;
  const Nanos total = arrival.stream ? route.timeouts.total_stream : route.timeouts.total_unary;
  record.total_by = route.total_by(arrival, budget);
  record.deadline = std::min(record.total_by, after(arrival.received, total));
  record.first_token_by = arrival.stream ? std::min(record.deadline, arrival.content_by) : record.deadline;
  record.head_by =
      arrival.stream ? std::min(record.first_token_by, after(arrival.received, arrival.head_within)) : record.deadline;
  record.content_by = route.content_by(arrival, budget);
  record.wish = route.wish(arrival, budget);
  rank_pools_for(now, slot);
  if (record.ranking.n == 0) {
    answer(slot, too_dear(record), orders);
  } else if (now >= std::min(record.head_by, record.content_by)) {
    answer_expired(now, slot, orders);
  } else if (!start_somewhere(now, slot, orders)) {
    if (hopeful(record)) {
      queue_fresh(now, slot, orders);
    } else if (!start_on_cooling(now, slot, orders)) {
      answer_unhealthy(now, slot, orders);
    }
  }
  return id;
}

// The pools in their order, each only if those before it let the request spill.
bool Dispatcher::State::start_somewhere(Time now, std::uint32_t slot, Orders& orders) {
  const Record& record = records[slot];
  for (const std::uint32_t p : record.pools()) {
    Pool& pool = pools[p];
    const std::uint32_t position = pool.balancer.choose(
        loads, record.not_these(),
        {seed, Records::serial(record.id), static_cast<std::uint64_t>(Use::choice) << 8 | record.attempts});
    if (position != routing::Balancer::none) {
      start(now, slot, p, position, orders);
      return true;
    }
    if (!spills(now, record, pool)) return false;
  }
  return false;
}

bool Dispatcher::State::spills(Time now, const Record& record, const Pool& pool) const {
  if (spills(now, seeker(record), pool)) return true;
  if (record.tried_n > 0 && untried_in(record, static_cast<std::uint32_t>(&pool - pools.data())) == 0) return true;
  const bool comes = record.stage == Stage::free && record.attempts == 0;
  return comes && !pool.queue.admits(pool.limits, seeker(record).lane(), record.klass, record.body_bytes);
}

// One that has tried nothing yet.
bool Dispatcher::State::spills(Time now, const Seeker& who, const Pool& pool) const {
  if (pool.hopeful == 0) return true;
  if (who.content_by == never) return who.patience == never || now >= who.patience;
  if (now >= spill_at(who, pool)) return true;
  return !admit({wait_in(now, pool, who), pool.forecast.ttft_q90(), who.content_by - now}).admitted;
}

// Until then it may hope for the pool: as long as it could be predicted to wait and be admitted.
Time Dispatcher::State::spill_at(const Seeker& who, const Pool& pool) {
  if (who.content_by == never) return who.patience;
  return std::min(who.patience, who.content_by - (who.content_by - who.received) / 10 * 3 - pool.forecast.ttft_q90());
}

Seeker Dispatcher::State::seeker(const Record& record) {
  return {record.received, record.content_by, record.repeat, record.klass, record.tenant, record.patience};
}

// The last resort where the configuration allows it: every endpoint is out, and this one only cools down.
bool Dispatcher::State::start_on_cooling(Time now, std::uint32_t slot, Orders& orders) {
  const Record& record = records[slot];
  for (const std::uint32_t p : record.pools()) {
    const std::span<const routing::Member> members = pools[p].balancer.members();
    std::uint32_t least = routing::Balancer::none;
    for (std::uint32_t position = 0; position < members.size(); ++position) {
      const std::uint32_t e = members[position].endpoint;
      const Health& health = endpoints[e].health;
      if (health.state() != HealthState::cooling || health.cooldown_last_backend() != LastCooling::attempt) continue;
      if (!endpoints[e].planned || endpoints[e].drained || !loads[e].free()) continue;
      if (least == routing::Balancer::none || loads[e].in_flight < loads[members[least].endpoint].in_flight)
        least = position;
    }
    if (least != routing::Balancer::none) {
      start(now, slot, p, least, orders);
      return true;
    }
  }
  return false;
}

void Dispatcher::State::start(Time now, std::uint32_t slot, std::uint32_t p, std::uint32_t position, Orders& orders) {
  Record& record = records[slot];
  Pool& pool = pools[p];
  if (record.stage == Stage::waiting) {
    charge(now, slot, p);
    pool.overload.served(now, now - record.queued_at,
                         std::min(record.content_by - record.received, pool.limits.wait_max));
    stop_waiting(slot);
  } else if (record.attempts == 0 && !record.repeat) {
    pool.forecast.arrived(now);
  }
  pool.forecast.started(now, record.klass);
  const routing::Member member = pool.balancer.members()[position];
  Endpoint& endpoint = endpoints[member.endpoint];
  loads.take(member.endpoint);
  record.trial = endpoint.health.half_open_free();
  if (record.trial) endpoint.health.trial_started();
  endpoint.health.started(now);
  endpoint.prefill_tokens += record.prefilling = record.estimate.input;
  refresh(member.endpoint);
  if (endpoint.health.held_back()) set_alarm(member.endpoint);
  ++pool.in_flight;
  ++endpoint.attempts;
  ++record.attempts;
  record.stage = Stage::running;
  record.pool = p;
  record.endpoint = member.endpoint;
  record.started_at = now;

  const TimeoutOptions& timeouts = routes[record.route].timeouts;
  Start start;
  start.attempt = {record.id, record.attempts};
  start.backend = member.backend;
  start.endpoint = EndpointId{member.endpoint};
  start.why = record.why;
  start.end_by = record.deadline;
  start.first_byte_by = std::min(after(now, timeouts.first_byte), record.head_by);
  start.connect_by = std::min(after(now, timeouts.connect), start.first_byte_by);
  start.first_token_by =
      record.stream ? std::min(after(now, timeouts.first_token), record.first_token_by) : record.deadline;
  start.idle = std::min(timeouts.idle, record.idle_within);
  orders.push_back({record.owner, record.id, start});
}

bool Dispatcher::State::hopeful(const Record& record) const {
  return std::ranges::any_of(record.pools(), [this](std::uint32_t p) { return pools[p].hopeful > 0; });
}

// Members of the pool that could take it, were a unit free, and that it has not tried.
std::uint32_t Dispatcher::State::untried_in(const Record& record, std::uint32_t p) const {
  std::uint32_t left = pools[p].eligible;
  for (const std::uint32_t e : record.not_these()) {
    if (!endpoints[e].standing.eligible) continue;
    for (const Endpoint::Place& place : endpoints[e].places) left -= static_cast<std::uint32_t>(place.pool == p);
  }
  return left;
}

bool Dispatcher::State::has_untried(const Record& record) const {
  return std::ranges::any_of(record.pools(), [&](std::uint32_t p) { return untried_in(record, p) > 0; });
}

}  // namespace headgate::policies
