// The Dispatcher's tables and the steps that its calls are made of. Each part decides by itself (health, limit, queue,
// admission, retry, routing); here they are only put together, in eight files:
//   dispatch_start.cpp   choose a backend, take its unit, order the attempt
//   dispatch_pool.cpp    which of its route's pools, in which order
//   dispatch_wait.cpp    queue, expire, serve who waits, answer
//   dispatch_end.cpp     an attempt is over: give back, fail over or answer
//   dispatch_health.cpp  endpoints going out of use and coming back
//   dispatch_tenant.cpp  what a tenant may have, and what it is charged
//   dispatch_limit.cpp   how many attempts an endpoint may have
//   dispatch_plan.cpp    a new configuration over running state
// Indices into the tables are ids as numbers. Invariant between calls: no ticket waits in a pool for a unit that is
// free and that it may use; so a unit found free at arrival has nobody ahead.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/adaptive_limit.hpp"
#include "policies/admission.hpp"
#include "policies/alarms.hpp"
#include "policies/base/random.hpp"
#include "policies/dispatcher.hpp"
#include "policies/health.hpp"
#include "policies/limit.hpp"
#include "policies/pace.hpp"
#include "policies/queue.hpp"
#include "policies/record.hpp"
#include "policies/retry.hpp"
#include "policies/routing/balancer.hpp"
#include "policies/standing_overload.hpp"
#include "policies/tenant.hpp"
#include "policies/token_estimator.hpp"

namespace headgate::policies {

// An endpoint as its pools count it. eligible: could take a request, were a unit free. hopeful: so, or after its
// half-open request.
struct Standing {
  bool open = false, up = false, eligible = false, hopeful = false, ejected = false;
  template <class A>
  void image(A& a) {
    a(open, up, eligible, hopeful, ejected);
  }
  friend bool operator==(const Standing&, const Standing&) = default;
};

// Somebody who waited for it may have to look elsewhere.
constexpr bool lost(const Standing& before, const Standing& now) {
  return (before.eligible && !now.eligible) || (before.hopeful && !now.hopeful);
}

struct Endpoint {
  struct Place {
    std::uint32_t pool, position;
    template <class A>
    void image(A& a) {
      a(pool, position);
    }
  };
  bool planned = false;
  bool drained = false;           // by hand
  std::uint32_t hand_weight = 0;  // 0: the plan's
  Standing standing;
  std::uint32_t turn = 0;  // which of its places is served next
  std::vector<Place> places;
  Health health;
  Evacuation evacuation;
  LimitOptions limit;
  std::uint32_t max_in_flight = 0;
  AdaptiveLimit adaptive;
  Pace pace;
  Time due = never;  // as set in the alarms
  std::uint64_t attempts = 0, failures = 0, successes = 0;
  std::uint64_t prefill_tokens = 0;  // of attempts whose first content has not come
  template <class A>
  void image(A& a) {
    a(planned, drained, hand_weight, standing, turn, places, health, evacuation, limit, max_in_flight, adaptive, pace,
      due, attempts, failures, successes, prefill_tokens);
  }
};

struct Pool {
  bool planned = false;
  routing::Balancer balancer;
  QueueOptions limits;
  PoolQueue queue;
  Forecast forecast;
  StandingOverload overload;
  PaceModel pace;
  PoolOffer offer;
  std::uint32_t in_flight = 0;                                   // attempts made through this pool
  std::uint32_t up = 0, eligible = 0, hopeful = 0, ejected = 0;  // members by standing
  template <class A>
  void image(A& a) {
    a(planned, balancer, limits, queue, forecast, overload, pace, offer, in_flight, up, eligible, hopeful, ejected);
  }
};

struct Route {
  bool planned = false;
  std::vector<std::uint32_t> pools;
  PoolOrder order = PoolOrder::priority;
  BudgetOptions budget;
  TimeoutOptions timeouts;
  RetryOptions retry;
  RetryBudget retry_budget;
  TokenEstimator estimator;
  std::uint32_t default_max_tokens = 0;
  bool gone() const { return !planned && pools.empty(); }
  template <class A>
  void image(A& a) {
    a(planned, pools, order, budget, timeouts, retry, retry_budget, estimator, default_max_tokens);
  }
  // With the budget of the request's class.
  Time total_by(const Arrival& arrival, const BudgetOptions& klass) const {
    const Nanos total = std::min(budget.total.value_or(Nanos::max()), klass.total.value_or(Nanos::max()));
    return std::min(arrival.deadline, after(arrival.received, total));
  }
  PoolWish wish(const Arrival& arrival, const BudgetOptions& klass) const {
    return {std::max({arrival.min_quality, budget.min_quality.value_or(0), klass.min_quality.value_or(0)}),
            std::min({arrival.max_cost_usd, budget.max_cost_usd.value_or(unlimited_usd),
                      klass.max_cost_usd.value_or(unlimited_usd)})};
  }
  Time content_by(const Arrival& arrival, const BudgetOptions& klass) const {
    const Nanos ttft = std::min(budget.ttft.value_or(Nanos::max()), klass.ttft.value_or(Nanos::max()));
    return std::min(arrival.content_by, after(arrival.received, ttft));
  }
};

// Who looks for a place in a queue.
struct Seeker {
  Time received{}, content_by{};
  bool repeat = false;
  Class klass = Class::interactive;
  std::uint32_t tenant = 0;
  Time patience = never;
  Lane lane() const { return repeat ? Lane::repeats : Lane::fresh; }
};

// Of advice, so that those who are sent away do not come back together.
inline Nanos jittered(Nanos time, std::uint64_t bits) {
  return Nanos{static_cast<std::int64_t>(static_cast<double>(time.count()) * (1 + unit(bits) / 2))};
}

// What a draw is for; a request's attempt number keeps its draws apart.
enum class Use : std::uint64_t { choice, backoff, advice, door_advice, pool };

struct Dispatcher::State {
  std::vector<Endpoint> endpoints;
  std::vector<Pool> pools;
  std::vector<Route> routes;
  std::vector<Tenant> tenants;
  ClassPlans classes = default_classes();
  InFlight loads;
  Records records;
  Tickets tickets;
  Alarms request_alarms, endpoint_alarms;
  std::vector<std::uint32_t> woken, places;  // scratch of advance() and reconsider_waiting()
  std::uint64_t seed = 1, tickets_drawn = 0, turned_away = 0;
  std::uint32_t waiting = 0;  // waiting or delayed
  Time clock{};               // of the last call
  template <class A>
  void image(A& a) {
    a(endpoints, pools, routes, tenants, classes, loads, records, tickets, request_alarms, endpoint_alarms, seed,
      tickets_drawn, turned_away, waiting, clock);
  }

  // dispatch_start.cpp
  RequestId arrive(Time now, const Arrival& arrival, Orders& orders);
  bool start_somewhere(Time now, std::uint32_t slot, Orders& orders);
  bool start_on_cooling(Time now, std::uint32_t slot, Orders& orders);
  void start(Time now, std::uint32_t slot, std::uint32_t pool, std::uint32_t position, Orders& orders);
  bool spills(Time now, const Record& record, const Pool& pool) const;
  bool spills(Time now, const Seeker& who, const Pool& pool) const;
  static Time spill_at(const Seeker& who, const Pool& pool);
  static Seeker seeker(const Record& record);
  bool hopeful(const Record& record) const;
  bool has_untried(const Record& record) const;
  std::uint32_t untried_in(const Record& record, std::uint32_t pool) const;
  std::uint64_t bits(const Record& record, Use use) const;

  // dispatch_pool.cpp
  void rank_pools_for(Time now, std::uint32_t slot);
  PoolCandidate candidate(Time now, const Record& record, std::uint32_t pool) const;
  Answer too_dear(const Record& record) const;

  // dispatch_wait.cpp
  std::optional<Answer> turn_away(Time now, const Arrival& arrival, Orders& orders);
  std::optional<Nanos> wait_in(Time now, const Pool& pool, const Seeker& who) const;
  Nanos wait_max(const Pool& pool, Class klass) const;
  Answer no_room(Time now, const Pool& pool, std::uint64_t body_bytes, const Seeker& who, std::uint64_t bits) const;
  void queue_fresh(Time now, std::uint32_t slot, Orders& orders);
  void queue_at_head(Time now, std::uint32_t slot);
  bool newest_first(const Record& record) const;
  void link_allowed(Time now, std::uint32_t slot, bool within_bounds);
  void wait_in_queue(Time now, std::uint32_t slot);
  void stop_waiting(std::uint32_t slot);
  void serve(Time now, std::uint32_t endpoint, Orders& orders);
  bool serve_one(Time now, std::uint32_t pool, Orders& orders);
  void reconsider(Time now, std::uint32_t slot, Orders& orders);
  void ring(Time now, std::uint32_t slot, Orders& orders);
  void advance(Time now, Orders& orders);
  void answer(std::uint32_t slot, const Answer& answer, Orders& orders);
  void answer_unhealthy(Time now, std::uint32_t slot, Orders& orders);
  void answer_expired(Time now, std::uint32_t slot, Orders& orders);
  void release(std::uint32_t slot);

  // dispatch_tenant.cpp
  Class class_of(const Arrival& arrival) const;
  std::uint32_t known_tenant(TenantId id) const;
  std::optional<Answer> over_limits(Time now, const Record& record, std::uint64_t bits) const;
  void set_turn(std::uint32_t slot);
  void charge(Time now, std::uint32_t slot, std::uint32_t pool);
  void use(Record& record, const Outcome& outcome);
  void settle(std::uint32_t slot);

  // dispatch_end.cpp
  void ended(Time now, AttemptId attempt, const Outcome& outcome, Orders& orders);
  void first_token(Time now, AttemptId attempt, Orders& orders);
  void caller_gone(Time now, RequestId request, Orders& orders);
  void judge(Time now, const Record& record, const Outcome& outcome);
  void fail_over(Time now, std::uint32_t slot, const Outcome& outcome, Orders& orders);
  void try_alone(Time now, std::uint32_t slot, const Outcome& outcome, Orders& orders);
  void try_again(Time now, std::uint32_t slot, Orders& orders);
  bool pay(Record& record, const Outcome& outcome);
  void end_prefill(Record& record);

  // dispatch_health.cpp
  void refresh(std::uint32_t endpoint);
  void set_alarm(std::uint32_t endpoint);
  void set_by_hand(Time now, std::uint32_t endpoint, const HandSetting& setting, Orders& orders);
  void apply_weight(std::uint32_t endpoint);
  void health_changed(Time now, std::uint32_t endpoint, Orders& orders);
  void reconsider_waiting(Time now, std::uint32_t endpoint, Orders& orders);
  bool may_eject(std::uint32_t endpoint) const;
  bool may_demote(std::uint32_t endpoint) const;
  bool spared(std::uint32_t endpoint) const;
  bool others_healthy(std::uint32_t endpoint, std::uint32_t pool) const;
  Time returns_at(Time now, const Record& record, bool probes_count) const;

  // dispatch_limit.cpp
  void progress(Time now, std::span<const Progress> list, Orders& orders);
  void set_limit(std::uint32_t endpoint);
  void watch_pace(Time now, const Progress& of, Orders& orders);
  void forgive_slow(Time now, std::uint32_t endpoint, Orders& orders);
  void learn_of_limit(const Record& record, const Outcome& outcome, Time now);

  // dispatch_plan.cpp
  void replan(Time now, Plan plan, Orders& orders);
  void adopt(Plan& plan);
  void count_standings();
};

}  // namespace headgate::policies
