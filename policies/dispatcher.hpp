// The decisions of the gateway as one object without I/O, threads or a clock: calls go in with a `now` that never
// falls, orders come out. Two hosts drive it: gateway/ with sockets and real time, tests (later the simulator) with
// virtual time. The host serialises the calls.
//
//   RequestId id = dispatcher.arrive(now, arrival, orders);   // orders: a Start, an Answer, or nothing (it waits)
//   dispatcher.first_token(now, attempt, orders);             // commit: from here no other backend can take over
//   dispatcher.ended(now, attempt, outcome, orders);          // once per Start; orders: next Start, an Answer, or
//   others' Starts dispatcher.caller_gone(now, id, orders);                  // any state, idempotent
//
// Invariants (tests/policies holds them after every history): what a request holds (slot, queue place, bytes) is given
// back exactly once, by its own transitions; in flight never exceeds an endpoint's limit; stale ids change nothing;
// a request is answered at most once; no allocation once the tables have grown to the load.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policies/calls.hpp"
#include "policies/orders.hpp"
#include "policies/plan.hpp"

namespace headgate::policies {

// slow: up, but given one request now and then only, to see whether it still is.
enum class HealthState : std::uint8_t { up, cooling, ejected, half_open, down, slow };

// What an operator sets by hand. It outlives replans, until it is set otherwise.
struct HandSetting {
  std::optional<bool> drained;          // takes no new attempts; those it has end as they would
  std::optional<std::uint32_t> weight;  // in place of the plan's, wherever it is a member; 0: the plan's again
};

struct EndpointState {
  EndpointId id{};
  bool planned = false;  // false: removed by a reload, shown until its last request ends
  bool drained = false;
  std::uint32_t hand_weight = 0;  // 0: the plan's
  HealthState health = HealthState::up;
  std::uint32_t in_flight = 0, max_in_flight = 0;  // max: the limit now
  std::uint64_t prefill_tokens = 0;                // of attempts whose first content has not come
  std::uint64_t prefill_tokens_max = 0;
  Nanos mean_gap{0};  // between tokens, of an adaptive limit's last window; 0: unknown
  std::uint64_t attempts_total = 0, failures_total = 0, successes_total = 0;
  std::uint64_t probe_failures_total = 0, health_changes_total = 0,
                ejections_total = 0;  // changes: in <-> out of rotation
  Time out_until{};                   // when ejected or cooling
};

struct PoolState {
  PoolId id{};
  std::uint32_t queued = 0;
  std::uint64_t queued_bytes = 0;
  double drain_per_s = 0;                                  // starts taken from the queue, recent
  std::array<std::uint32_t, classes_n> queued_by_class{};  // new requests, without repeats and retries
};

struct RouteState {
  RouteId id{};
  double retry_credit = 0;
};

struct TenantState {  // of one that has requests
  TenantId id{};
  std::uint32_t requests = 0;  // waiting or running
  RateState rates;
};

struct Snapshot {
  std::vector<EndpointState> endpoints;
  std::vector<PoolState> pools;
  std::vector<RouteState> routes;
  std::vector<TenantState> tenants;
  std::uint32_t requests = 0;  // arrived and not ended
  std::uint32_t waiting = 0;   // of these, without an attempt
};

class Dispatcher {
 public:
  explicit Dispatcher(Plan plan);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  RequestId arrive(Time now, const Arrival& arrival, Orders& orders);
  // Before the body is looked at: the answer that arrive() would give whatever `stream` and the token counts are, if
  // that is certain (queue_full); nothing else is decided or kept.
  std::optional<Answer> turn_away(Time now, const Arrival& arrival, Orders& orders);
  void first_token(Time now, AttemptId attempt, Orders& orders);
  void ended(Time now, AttemptId attempt, const Outcome& outcome, Orders& orders);
  void progress(Time now, std::span<const Progress> list, Orders& orders);  // some ten times a second
  void caller_gone(Time now, RequestId request, Orders& orders);
  void probed(Time now, EndpointId endpoint, const ProbeResult& result, Orders& orders);
  void set_by_hand(Time now, EndpointId endpoint, const HandSetting& setting, Orders& orders);  // unknown ids: nothing
  // New configuration; state is kept by id. Waiting requests move to the pools their route now has.
  void replan(Time now, Plan plan, Orders& orders);
  // Expiry, delayed retries, endpoints coming back. Call at next_wake() or later.
  void tick(Time now, Orders& orders);
  Time next_wake() const;
  void snapshot(Snapshot& out) const;
  // All of its state, for a replay that begins here: base/image.hpp. Allocates; some 290 bytes a request and a backend,
  // 1 to 3 ms for 6,000 requests at 1,000 backends.
  std::string image() const;
  // Goes on from there. False, and nothing is changed: that is no image of this build.
  bool restore(std::string_view image);
  RateState rates(Time now, TenantId tenant) const;
  // Some backend of the route could be tried now, were a slot free.
  bool servable(Time now, RouteId route) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headgate::policies
