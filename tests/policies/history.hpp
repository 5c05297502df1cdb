// A whole history of a Dispatcher in virtual time: the fixture plays the host, remembers every order and, after each
// call, holds the Dispatcher's own figures against its book: in flight per endpoint, waiting, requests, at most one
// answer a request, no start over a limit. expect_idle() at the end of a story: everything has been given back.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "policies/dispatcher.hpp"
#include "policies/moment.hpp"

namespace headgate::policies {

inline Arrival stream() { return {.stream = true}; }

struct PlanOf {
  Plan plan;

  // One pool of `n` endpoints with `limit` units each; backend ids count up over all pools.
  PlanOf& pool(std::uint32_t n, std::uint32_t limit = 16, Balance balance = Balance::least_in_flight) {
    PoolPlan pool{
        .id = PoolId{static_cast<std::uint32_t>(plan.pools.size())}, .backends = {}, .balance = balance, .queue = {}};
    for (std::uint32_t i = 0; i < n; ++i) {
      const EndpointId endpoint{static_cast<std::uint32_t>(plan.endpoints.size())};
      plan.endpoints.push_back({.id = endpoint, .max_in_flight = limit, .health = {}});
      pool.backends.push_back({BackendId{next_backend++}, endpoint, 1});
    }
    plan.pools.push_back(std::move(pool));
    return *this;
  }
  PlanOf& shared_pool(std::vector<std::uint32_t> endpoints) {
    PoolPlan pool{.id = PoolId{static_cast<std::uint32_t>(plan.pools.size())},
                  .backends = {},
                  .balance = Balance::least_in_flight,
                  .queue = {}};
    for (const std::uint32_t e : endpoints) pool.backends.push_back({BackendId{next_backend++}, EndpointId{e}, 1});
    plan.pools.push_back(std::move(pool));
    return *this;
  }
  PlanOf& route(std::vector<std::uint32_t> pools) {
    RoutePlan route{.id = RouteId{static_cast<std::uint32_t>(plan.routes.size())},
                    .pools = {},
                    .budget = {},
                    .timeouts = {},
                    .retry = {}};
    for (const std::uint32_t p : pools) route.pools.push_back(PoolId{p});
    plan.routes.push_back(std::move(route));
    return *this;
  }
  template <class Change>
  PlanOf& with(Change change) {
    change(plan);
    return *this;
  }
  std::uint32_t next_backend = 0;
};

inline Outcome ok() { return {}; }
inline Outcome failed(End end) { return {.end = end}; }
inline Outcome status(std::uint16_t code, Nanos retry_after = Nanos{-1}) {
  return {.end = End::status, .status = code, .retry_after = retry_after};
}

class History {
 public:
  struct Seen {
    std::vector<Start> starts;
    std::optional<Answer> answer;
    bool out = false, over = false, gone = false;  // out: an attempt runs
    Time answered_at{};
  };

  explicit History(const PlanOf& of) : History(of.plan) {}
  explicit History(const Plan& plan) : dispatcher_(plan) { learn(plan); }

  RequestId arrive(Nanos when, Arrival arrival = {}) {
    go(when);
    arrival.received = now_;
    for (Time* by : {&arrival.deadline, &arrival.content_by}) {
      if (*by != never) *by = now_ + (*by - Time{});
    }
    const RequestId id = dispatcher_.arrive(now_, arrival, orders_);
    seen_[id];
    settle();
    return id;
  }
  std::optional<Answer> turn_away(Nanos when, Arrival arrival) {
    go(when);
    arrival.received = now_;
    for (Time* by : {&arrival.deadline, &arrival.content_by}) {
      if (*by != never) *by = now_ + (*by - Time{});
    }
    const std::optional<Answer> answer = dispatcher_.turn_away(now_, arrival, orders_);
    settle();
    return answer;
  }
  void first_token(Nanos when, RequestId id) {
    go(when);
    dispatcher_.first_token(now_, seen_.at(id).starts.back().attempt, orders_);
    settle();
  }
  void end(Nanos when, RequestId id, const Outcome& outcome) {
    go(when);
    Seen& seen = seen_.at(id);
    ASSERT_TRUE(seen.out) << "nothing runs for this request";
    const Start start = seen.starts.back();
    seen.out = false;
    --in_flight_[index(start.endpoint)];
    const bool last = seen.gone || outcome.end == End::ok || outcome.end == End::cancelled;
    seen.over = last;
    dispatcher_.ended(now_, start.attempt, outcome, orders_);
    settle();
    if (last) {
      EXPECT_FALSE(seen.answer) << "an answer after the end";
    }
  }
  void stale_end(Nanos when, AttemptId attempt) {
    go(when);
    dispatcher_.ended(now_, attempt, failed(End::connect), orders_);
    settle();
  }
  void leave(Nanos when, RequestId id) {
    go(when);
    Seen& seen = seen_.at(id);
    // Whatever is due is done before the caller is found gone.
    tick(when);
    if (!seen.over) {
      seen.gone = true;
      if (!seen.out) seen.over = true;
    }
    dispatcher_.caller_gone(now_, id, orders_);
    settle();
  }
  void progress(Nanos when, std::vector<Progress> list) {
    go(when);
    dispatcher_.progress(now_, list, orders_);
    settle();
  }
  void probe(Nanos when, std::uint32_t endpoint, bool good) {
    go(when);
    dispatcher_.probed(now_, EndpointId{endpoint}, {good}, orders_);
    settle();
  }
  void set_by_hand(Nanos when, std::uint32_t endpoint, const HandSetting& setting) {
    go(when);
    tick(when);  // whatever is due is done first
    if (setting.drained) drained_[endpoint] = *setting.drained && limits_.count(endpoint) > 0;
    dispatcher_.set_by_hand(now_, EndpointId{endpoint}, setting, orders_);
    settle();
  }
  void replan(Nanos when, const Plan& plan) {
    go(when);
    learn(plan);
    dispatcher_.replan(now_, plan, orders_);
    settle();
  }
  void tick(Nanos when) {
    go(when);
    dispatcher_.tick(now_, orders_);
    settle();
  }
  // Lets time pass, ticking exactly when asked to.
  void pass_until(Nanos when) {
    while (dispatcher_.next_wake() <= at(when)) {
      ASSERT_GE(dispatcher_.next_wake(), now_) << "an alarm stayed behind";
      tick(std::max(dispatcher_.next_wake(), now_) - at(0s));
    }
    go(when);
  }

  const Seen& of(RequestId id) const { return seen_.at(id); }
  bool runs(RequestId id) const { return seen_.at(id).out; }
  bool waits(RequestId id) const { return !seen_.at(id).out && !seen_.at(id).over; }
  std::uint32_t endpoint(RequestId id) const {
    return static_cast<std::uint32_t>(index(seen_.at(id).starts.back().endpoint));
  }
  std::optional<Code> code(RequestId id) const {
    return seen_.at(id).answer ? std::optional(seen_.at(id).answer->code) : std::nullopt;
  }
  const std::map<RequestId, Seen>& all() const { return seen_; }
  std::uint32_t starts_at(std::uint32_t endpoint) const { return starts_.count(endpoint) ? starts_.at(endpoint) : 0; }

  Snapshot snapshot() const {
    Snapshot snapshot;
    dispatcher_.snapshot(snapshot);
    return snapshot;
  }
  EndpointState state(std::uint32_t endpoint) const {
    for (const EndpointState& state : snapshot().endpoints) {
      if (state.id == EndpointId{endpoint}) return state;
    }
    ADD_FAILURE() << "no endpoint " << endpoint;
    return {};
  }
  PoolState pool(std::uint32_t pool) const { return snapshot().pools.at(pool); }
  bool servable(std::uint32_t route) const { return dispatcher_.servable(now_, RouteId{route}); }
  Nanos now() const { return now_ - at(0s); }
  Time next_wake() const { return dispatcher_.next_wake(); }

  void expect_idle() const {
    const Snapshot snap = snapshot();
    EXPECT_EQ(snap.requests, 0u);
    EXPECT_EQ(snap.waiting, 0u);
    for (const EndpointState& endpoint : snap.endpoints) {
      EXPECT_EQ(endpoint.in_flight, 0u);
      EXPECT_EQ(endpoint.prefill_tokens, 0u);
    }
    for (const PoolState& pool : snap.pools) {
      EXPECT_EQ(pool.queued, 0u);
      EXPECT_EQ(pool.queued_bytes, 0u);
    }
  }
  // Requests without an end are forgotten: for histories that need only the recent ones.
  void forget_finished() {
    std::erase_if(seen_, [](const auto& entry) { return entry.second.over; });
  }

 private:
  void learn(const Plan& plan) {
    limits_.clear();
    for (const EndpointPlan& endpoint : plan.endpoints)
      limits_[static_cast<std::uint32_t>(index(endpoint.id))] = endpoint.max_in_flight;
  }
  void go(Nanos when) {
    ASSERT_GE(at(when), now_) << "time falls";
    now_ = at(when);
  }
  void settle() {
    for (const Order& order : orders_) {
      Seen& seen = seen_[order.request];
      EXPECT_FALSE(seen.over) << "an order for a request that is over";
      EXPECT_FALSE(seen.out) << "an order while an attempt runs";
      if (const auto* start = std::get_if<Start>(&order.what)) {
        start_one(*start, order, seen);
      } else {
        EXPECT_FALSE(seen.gone) << "an answer for nobody";
        EXPECT_FALSE(seen.answer) << "a second answer";
        seen.answer = std::get<Answer>(order.what);
        seen.answered_at = now_;
        seen.over = true;
      }
    }
    orders_.clear();
    check();
  }
  void start_one(const Start& start, const Order& order, Seen& seen) {
    const auto e = static_cast<std::uint32_t>(index(start.endpoint));
    EXPECT_TRUE(limits_.count(e)) << "a start at an endpoint that was removed";
    EXPECT_LT(in_flight_[e], limits_[e]) << "over the limit";
    EXPECT_FALSE(drained_[e]) << "a start at a drained endpoint";
    EXPECT_EQ(start.attempt.request, order.request);
    EXPECT_EQ(start.attempt.n, seen.starts.size() + 1);
    EXPECT_GT(start.end_by, now_);
    EXPECT_LE(start.connect_by, start.end_by);
    EXPECT_LE(start.first_byte_by, start.end_by);
    EXPECT_LE(start.first_token_by, start.end_by);
    seen.starts.push_back(start);
    seen.out = true;
    ++in_flight_[e];
    ++starts_[e];
  }
  void check() const {
    std::uint32_t open = 0, waiting = 0;
    for (const auto& [id, seen] : seen_) {
      open += static_cast<std::uint32_t>(!seen.over);
      waiting += static_cast<std::uint32_t>(!seen.over && !seen.out);
    }
    const Snapshot snap = snapshot();
    EXPECT_EQ(snap.requests, open);
    EXPECT_EQ(snap.waiting, waiting);
    std::uint32_t in_flight = 0;
    for (const EndpointState& endpoint : snap.endpoints) {
      const auto book = in_flight_.find(static_cast<std::uint32_t>(index(endpoint.id)));
      EXPECT_EQ(endpoint.in_flight, book == in_flight_.end() ? 0 : book->second);
      in_flight += endpoint.in_flight;
    }
    EXPECT_EQ(in_flight, open - waiting);
  }

  Dispatcher dispatcher_;
  Orders orders_;
  Time now_ = at(0s);
  std::map<RequestId, Seen> seen_;
  std::map<std::size_t, std::uint32_t> in_flight_;
  std::map<std::uint32_t, std::uint32_t> limits_, starts_;
  std::map<std::uint32_t, bool> drained_;
};

}  // namespace headgate::policies
