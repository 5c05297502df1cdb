// A new configuration over running state: ids that stay keep their state, limits change in place, who waits moves to
// the pools its route has now. A pool or backend that left the plan takes no new attempts and ends what it has; a route
// that left it serves out, from the pools that stay, who came through it.
#include <algorithm>
#include <tuple>
#include <utility>

#include "policies/dispatcher_state.hpp"

namespace headgate::policies {
namespace {

template <class Table, class Plans>
void grow_to_ids(Table& table, const Plans& plans) {
  for (const auto& plan : plans) {
    if (table.size() <= index(plan.id)) table.resize(index(plan.id) + 1);
  }
  for (auto& entry : table) entry.planned = false;
}

}  // namespace

void Dispatcher::State::adopt(Plan& plan) {
  seed = plan.seed;
  grow_to_ids(endpoints, plan.endpoints);
  grow_to_ids(pools, plan.pools);
  grow_to_ids(routes, plan.routes);
  loads.grow(endpoints.size());
  for (Endpoint& endpoint : endpoints) endpoint.places.clear();
  for (const EndpointPlan& from : plan.endpoints) {
    const auto e = static_cast<std::uint32_t>(index(from.id));
    endpoints[e].planned = true;
    endpoints[e].health.configure(from.health);
    endpoints[e].limit = from.limit;
    endpoints[e].max_in_flight = from.max_in_flight;
    endpoints[e].adaptive.configure({.itl = from.limit.itl, .max = from.max_in_flight});
    set_limit(e);
  }
  for (Pool& pool : pools) pool.balancer.configure(Balance::p2c, {});
  for (const PoolPlan& from : plan.pools) {
    Pool& pool = pools[index(from.id)];
    pool.planned = true;
    pool.limits = from.queue;
    pool.offer = from.offer;
    pool.balancer.configure(from.balance, from.backends);
    for (std::uint32_t position = 0; position < from.backends.size(); ++position) {
      endpoints[index(from.backends[position].endpoint)].places.push_back(
          {static_cast<std::uint32_t>(index(from.id)), position});
    }
  }
  for (std::uint32_t e = 0; e < endpoints.size(); ++e) apply_weight(e);
  classes = plan.classes;
  for (Pool& pool : pools) pool.queue.fair().configure(classes);
  if (tenants.empty()) tenants.resize(1);
  for (Tenant& tenant : tenants) tenant.configure({});
  for (const TenantPlan& from : plan.tenants) {
    if (tenants.size() <= index(from.id)) tenants.resize(index(from.id) + 1);
    tenants[index(from.id)].configure(from);
  }
  for (RoutePlan& from : plan.routes) {
    Route& route = routes[index(from.id)];
    route.planned = true;
    route.pools.clear();
    for (const PoolId id : from.pools) {
      if (index(id) < pools.size() && pools[index(id)].planned)
        route.pools.push_back(static_cast<std::uint32_t>(index(id)));
    }
    route.order = from.order;
    route.budget = from.budget;
    route.timeouts = from.timeouts;
    route.retry = from.retry;
    route.retry.attempts_max = std::min(from.retry.attempts_max, 255u);  // AttemptId counts in a byte
    route.retry_budget.configure(from.retry);
    route.default_max_tokens = from.default_max_tokens.value_or(0);
  }
  // Those that left the plan: who came through them may still use what is left of their pools.
  for (Route& route : routes) {
    if (!route.planned) std::erase_if(route.pools, [this](std::uint32_t p) { return !pools[p].planned; });
  }
}

// From nothing: the members are new, so what was counted is void.
void Dispatcher::State::count_standings() {
  for (Pool& pool : pools) pool.up = pool.eligible = pool.hopeful = pool.ejected = 0;
  for (std::uint32_t e = 0; e < endpoints.size(); ++e) {
    endpoints[e].standing = Standing{};
    refresh(e);
  }
}

void Dispatcher::State::replan(Time now, Plan plan, Orders& orders) {
  clock = now;  // what is due waits for the new plan: nothing is started under the old one any more
  std::vector<std::uint32_t> queued, delayed;
  for (std::uint32_t slot = 0; slot < records.slots(); ++slot) {
    if (records[slot].stage == Stage::waiting) queued.push_back(slot);
    if (records[slot].stage == Stage::delayed) delayed.push_back(slot);
  }
  std::ranges::sort(queued, [this](std::uint32_t a, std::uint32_t b) {
    return std::tuple(records[a].lane, records[a].ticket) < std::tuple(records[b].lane, records[b].ticket);
  });
  for (const std::uint32_t slot : queued) stop_waiting(slot);
  adopt(plan);
  count_standings();
  for (std::uint32_t slot = 0; slot < records.slots(); ++slot) {
    if (records[slot].id != RequestId::none) rank_pools_for(now, slot);
  }

  for (const std::uint32_t slot : delayed) {
    if (routes[records[slot].route].gone()) answer(slot, {.code = Code::model_not_found}, orders);
  }
  for (const std::uint32_t slot : queued) {
    Record& record = records[slot];
    record.stage = Stage::free;
    if (routes[record.route].gone()) {
      answer(slot, {.code = Code::model_not_found}, orders);
      continue;
    }
    if (record.ranking.n == 0) {
      answer(slot, too_dear(record), orders);
      continue;
    }
    if (now >= record.wait_by) {
      answer_expired(now, slot, orders);
      continue;
    }
    if (record.tried_n > 0 && !has_untried(record)) record.tried_n = 0;
    if (start_somewhere(now, slot, orders)) continue;
    record.stage = Stage::waiting;
    record.wait_by = record.queued_at;
    set_turn(slot);
    ++waiting;
    // Admitted under the old bounds: not refused now because the new ones are tighter.
    link_allowed(now, slot, false);
    reconsider(now, slot, orders);
  }
  advance(now, orders);  // who has waited longer than the new limits allow
}

}  // namespace headgate::policies
