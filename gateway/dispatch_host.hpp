// The Dispatcher's host: one mutex round it, the clock read inside, orders carried home. An order for the request that
// made the call comes back in its Inbox at once; every other is posted to the shard that owns its request. No I/O
// happens under the lock. With an event log, each call and order is recorded there in the order of the lock.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/catalog.hpp"
#include "gateway/event_log.hpp"
#include "gateway/hold_times.hpp"
#include "gateway/spinning_mutex.hpp"
#include "policies/dispatcher.hpp"

namespace headgate::gateway {

// An order with the backend it names: looked up under the lock, so that a reload can't come between.
struct Delivery {
  policies::Order order;
  std::shared_ptr<const config::Target> target;  // of a Start
};

// What a request has been ordered to do and has not begun: at most one order at a time.
using Inbox = std::optional<Delivery>;

// A shard as the host sees it.
class OrderPort {
 public:
  virtual void post(Delivery delivery) = 0;  // any thread
 protected:
  ~OrderPort() = default;
};

class DispatchHost {
 public:
  explicit DispatchHost(const config::Catalog& catalog);
  DispatchHost(const DispatchHost&) = delete;
  DispatchHost& operator=(const DispatchHost&) = delete;

  // Before any call: the shards by number, and how to be called back at tick() when a time comes sooner than known.
  void connect(std::vector<OrderPort*> shards, std::function<void(Time)> wake_at);

  // Before any call: the log outlives the host; the catalog is the constructor's.
  void record_into(EventLog& log, const config::Catalog& catalog);

  struct Arrived {
    policies::RequestId id{};
    Time at{};
    policies::RateState rates{};  // what its tenant has left
  };
  Arrived arrive(const policies::Arrival& arrival, Inbox& own);
  struct TurnedAway {
    policies::Answer answer;
    Time at;
  };
  std::optional<TurnedAway> turn_away(const policies::Arrival& arrival);
  void first_token(policies::AttemptId attempt);
  void ended(policies::AttemptId attempt, const policies::Outcome& outcome, policies::Owner owner, Inbox& own);
  void abandon(policies::AttemptId attempt);  // ended(cancelled) for a Start that nobody will begin
  void caller_gone(policies::RequestId request);
  void progress(std::vector<policies::Progress> list);
  void probed(policies::EndpointId endpoint, bool ok);
  void set_by_hand(policies::EndpointId endpoint, const policies::HandSetting& setting);
  void replan(const config::Catalog& catalog, std::string event_log_line);  // the line: of files begun from now on
  void tick();
  void flush_event_log();
  void snapshot(policies::Snapshot& out);
  const HoldTimes& lock_held() const { return lock_held_; }
  bool any_servable(const config::Catalog& catalog);  // some route can be served now

 private:
  template <class Call>
  void locked(const policies::Owner* caller, Inbox* own, Call&& call);
  template <class E>
  void record(E&& event) {
    if (event_log_ != nullptr) event_log_->add(std::forward<E>(event));
  }

  SpinningMutex mutex_;  // guards what is below, to sections_
  policies::Dispatcher dispatcher_;
  std::vector<std::shared_ptr<const config::Target>> targets_;
  policies::Orders orders_;
  Time promised_wake_ = never;
  HoldTimes lock_held_;
  std::uint32_t sections_ = 0;

  EventLog* event_log_ = nullptr;  // used under the lock
  std::vector<OrderPort*> shards_;
  std::function<void(Time)> wake_at_;
};

}  // namespace headgate::gateway
