// What the Dispatcher is told to do: the part of the configuration that decisions need, as plain values.
// Ids are dense small integers (see ids.hpp); a Plan lists what exists now, so an id left out is being drained.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/base/time.hpp"
#include "policies/ids.hpp"

namespace headgate::policies {

using namespace std::chrono_literals;

enum class Balance : std::uint8_t { round_robin, weighted, least_in_flight, p2c };
enum class PoolOrder : std::uint8_t { priority, cheapest_within_budget, fastest, weighted };  // pool_choice.hpp
enum class LimitMode : std::uint8_t { fixed, adaptive };
enum class QueueOrder : std::uint8_t { deadline, fifo, adaptive_lifo };  // of one tenant's requests
enum class Class : std::uint8_t { interactive, standard, batch, sheddable };
inline constexpr std::size_t classes_n = 4;
inline constexpr std::array<std::string_view, classes_n> class_names{"interactive", "standard", "batch", "sheddable"};
enum class LastCooling : std::uint8_t { refuse, attempt };  // what to do when every backend left is cooling down

struct HealthOptions {
  std::uint32_t consecutive_failures = 5;  // hard failures in a row that eject
  double success_ratio_min = 0.8;          // of the last 20 verdicts, 5 of them failures; 0: not looked at
  Nanos eject = 5s;                        // first ejection; doubles each time
  Nanos eject_max = 120s;
  Nanos slow_start = 10s;                  // after a return: a tenth of its limit, and a tenth more each tenth of this
  bool demote_slow = true;                 // pace.hpp
  Nanos cooldown_first = 500ms;            // a 429/503/529 without advice; doubles each time
  Nanos cooldown_unadvised_max = 5s;
  Nanos cooldown_max = 60s;  // longest advice that is followed
  LastCooling cooldown_last_backend = LastCooling::refuse;
  std::uint32_t probe_fall = 3;  // missed probes in a row that mean down
  std::uint32_t probe_rise = 2;  // good probes in a row that mean up again
  Nanos probe_interval = 5s;     // a success within 3 intervals overrides missed probes
  template <class A>
  void image(A& a) {
    a(consecutive_failures, success_ratio_min, eject, eject_max, slow_start, demote_slow, cooldown_first,
      cooldown_unadvised_max, cooldown_max, cooldown_last_backend, probe_fall, probe_rise, probe_interval);
  }
};

// How many attempts an endpoint has at once: at most max_in_flight, and less when `adaptive` finds that its streams
// would get their tokens too slowly.
struct LimitOptions {
  LimitMode mode = LimitMode::fixed;
  Nanos itl = 50ms;  // adaptive: mean gap between the tokens of an answer
  // Prompt tokens of attempts whose first content has not come; at this many no further one is sent there. Adaptive
  // limits need one: without it, each growth sends a burst of prompts that stops the streams, and the limit swings.
  std::optional<std::uint32_t> prefill_tokens_max;
  std::uint32_t prefill_max() const { return prefill_tokens_max.value_or(mode == LimitMode::adaptive ? 4000 : ~0u); }
  template <class A>
  void image(A& a) {
    a(mode, itl, prefill_tokens_max);
  }
};

struct EndpointPlan {
  EndpointId id{};
  std::uint32_t max_in_flight = 16;
  LimitOptions limit{};
  HealthOptions health;
};

struct BackendPlan {
  BackendId id{};
  EndpointId endpoint{};
  std::uint32_t weight = 1;
};

struct QueueOptions {
  std::uint32_t requests_max = 1000;
  std::uint64_t bytes_max = 256ull << 20;
  Nanos wait_max = 30s;
  QueueOrder order = QueueOrder::deadline;
  template <class A>
  void image(A& a) {
    a(requests_max, bytes_max, wait_max, order);
  }
};

// What a pool is worth to routes that choose among several.
struct PoolOffer {
  double input_usd = 0, output_usd = 0;  // per million tokens
  double quality = 0.5;                  // 0..1
  std::uint32_t weight = 1;              // under PoolOrder::weighted
  template <class A>
  void image(A& a) {
    a(input_usd, output_usd, quality, weight);
  }
};

struct PoolPlan {
  PoolId id{};
  std::vector<BackendPlan> backends;
  Balance balance = Balance::p2c;
  QueueOptions queue;
  PoolOffer offer{};
};

struct RetryOptions {
  std::uint32_t attempts_max = 3;
  bool after_delivery = true;       // false: only what no backend has received is tried again
  double budget_per_success = 0.1;  // credit deposited by each success
  double budget_initial = 10;
  double budget_max = 20;
  Nanos backoff = 50ms;  // same backend again: U[0, min(backoff * 2^n, backoff_max)]
  Nanos backoff_max = 1s;
  template <class A>
  void image(A& a) {
    a(attempts_max, after_delivery, budget_per_success, budget_initial, budget_max, backoff, backoff_max);
  }
};

struct TimeoutOptions {
  Nanos connect = 2s;
  Nanos first_byte = 60s;
  Nanos first_token = 60s;
  Nanos idle = 30s;
  Nanos total_unary = 300s;
  Nanos total_stream = 3600s;
  template <class A>
  void image(A& a) {
    a(connect, first_byte, first_token, idle, total_unary, total_stream);
  }
};

// What a request must make, counted from its first byte. A pool that is not predicted to make it is passed over; if
// none is, the request is refused at the door.
struct BudgetOptions {
  std::optional<Nanos> ttft;   // of unary requests: as if they were streams
  std::optional<Nanos> itl;    // mean gap between its tokens; of a route with several pools
  std::optional<Nanos> total;  // whole answer
  std::optional<double> max_cost_usd;
  std::optional<double> min_quality;
  template <class A>
  void image(A& a) {
    a(ttft, itl, total, max_cost_usd, min_quality);
  }
};

// What a class of requests is worth where requests wait. Its ceiling in the queues: queue.hpp.
struct ClassOptions {
  std::uint32_t weight = 1;         // of the tokens served while several classes wait
  double floor = 0;                 // share of them that it has at least
  std::optional<Nanos> wait_max{};  // as a pool's
  BudgetOptions budget{};           // as a route's
  template <class A>
  void image(A& a) {
    a(weight, floor, wait_max, budget);
  }
};

using ClassPlans = std::array<ClassOptions, classes_n>;  // by Class
constexpr ClassPlans default_classes() {
  return {{{.weight = 8, .floor = 0.5},
           {.weight = 4, .floor = 0.2},
           {.weight = 2, .floor = 0.05},
           {.weight = 1, .floor = 0}}};
}

// What a tenant may have: a request that is over it is refused at the door.
struct TenantLimits {
  std::optional<std::uint64_t> requests_per_minute{}, tokens_per_minute{};  // so many at once, too
  std::optional<std::uint32_t> concurrency{};                               // waiting or running
  template <class A>
  void image(A& a) {
    a(requests_per_minute, tokens_per_minute, concurrency);
  }
};

struct TenantPlan {
  TenantId id{};
  std::uint32_t weight = 1;          // of the tokens served while several tenants of a class wait
  Class klass = Class::interactive;  // the best its requests may have
  TenantLimits limits{};
};

inline constexpr std::uint32_t pools_max = 8;  // of a route

struct RoutePlan {
  RouteId id{};
  std::vector<PoolId> pools;  // 1 to 8
  PoolOrder order = PoolOrder::priority;
  BudgetOptions budget;
  TimeoutOptions timeouts;
  RetryOptions retry;
  std::optional<std::uint32_t> default_max_tokens{};  // of an answer whose caller sets no limit, for estimates
};

struct Plan {
  std::vector<EndpointPlan> endpoints;
  std::vector<PoolPlan> pools;
  std::vector<RoutePlan> routes;
  std::vector<TenantPlan> tenants;  // one that is not listed has the defaults
  ClassPlans classes = default_classes();
  std::uint64_t seed = 1;
};

}  // namespace headgate::policies
