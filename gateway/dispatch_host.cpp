#include "gateway/dispatch_host.hpp"

#include <chrono>
#include <utility>

namespace headgate::gateway {

DispatchHost::DispatchHost(const config::Catalog& catalog) : dispatcher_(catalog.plan), targets_(catalog.targets) {}

void DispatchHost::record_into(EventLog& log, const config::Catalog& catalog) {
  event_log_ = &log;
  log.add(config::Planned{catalog.plan});
}

void DispatchHost::connect(std::vector<OrderPort*> shards, std::function<void(Time)> wake_at) {
  shards_ = std::move(shards);
  wake_at_ = std::move(wake_at);
}

template <class Call>
void DispatchHost::locked(const policies::Owner* caller, Inbox* own, Call&& call) {
  std::vector<Delivery> others;
  Time wake = never;
  {
    const std::lock_guard lock(mutex_);
    orders_.clear();
    const Time entered = std::chrono::steady_clock::now();
    call(entered);
    for (const policies::Order& order : orders_) {
      record(config::Ordered{order});
      Delivery delivery{order, nullptr};
      if (const auto* start = std::get_if<policies::Start>(&order.what)) {
        delivery.target = targets_[policies::index(start->backend)];
      }
      const bool mine = caller != nullptr && order.to.shard == caller->shard && order.to.slot == caller->slot;
      if (mine) {
        *own = std::move(delivery);
      } else {
        others.push_back(std::move(delivery));
      }
    }
    if (const Time next = dispatcher_.next_wake(); next < promised_wake_) wake = promised_wake_ = next;
    if (event_log_ != nullptr && event_log_->full()) event_log_->begin_file(dispatcher_.image());
    if (++sections_ % HoldTimes::one_in == 0) lock_held_.observe(std::chrono::steady_clock::now() - entered);
  }
  for (Delivery& delivery : others) shards_[delivery.order.to.shard]->post(std::move(delivery));
  if (wake != never) wake_at_(wake);
}

DispatchHost::Arrived DispatchHost::arrive(const policies::Arrival& arrival, Inbox& own) {
  Arrived arrived{};
  locked(&arrival.owner, &own, [&](Time now) {
    arrived = {dispatcher_.arrive(now, arrival, orders_), now, dispatcher_.rates(now, arrival.tenant)};
    record(config::Arrived{now, arrival, arrived.id});
  });
  return arrived;
}

std::optional<DispatchHost::TurnedAway> DispatchHost::turn_away(const policies::Arrival& arrival) {
  std::optional<TurnedAway> no;
  locked(nullptr, nullptr, [&](Time now) {
    const std::optional<policies::Answer> answer = dispatcher_.turn_away(now, arrival, orders_);
    record(config::TurnedAway{now, arrival, answer});
    if (answer) no = {*answer, now};
  });
  return no;
}

void DispatchHost::first_token(policies::AttemptId attempt) {
  locked(nullptr, nullptr, [&](Time now) {
    record(config::FirstToken{now, attempt});
    dispatcher_.first_token(now, attempt, orders_);
  });
}

void DispatchHost::ended(policies::AttemptId attempt, const policies::Outcome& outcome, policies::Owner owner,
                         Inbox& own) {
  locked(&owner, &own, [&](Time now) {
    record(config::Ended{now, attempt, outcome});
    dispatcher_.ended(now, attempt, outcome, orders_);
  });
}

void DispatchHost::abandon(policies::AttemptId attempt) {
  const policies::Outcome cancelled{.end = policies::End::cancelled};
  locked(nullptr, nullptr, [&](Time now) {
    record(config::Ended{now, attempt, cancelled});
    dispatcher_.ended(now, attempt, cancelled, orders_);
  });
}

void DispatchHost::caller_gone(policies::RequestId request) {
  locked(nullptr, nullptr, [&](Time now) {
    record(config::CallerGone{now, request});
    dispatcher_.caller_gone(now, request, orders_);
  });
}

void DispatchHost::progress(std::vector<policies::Progress> list) {
  locked(nullptr, nullptr, [&](Time now) {
    dispatcher_.progress(now, list, orders_);
    record(config::Progressed{now, std::move(list)});
  });
}

void DispatchHost::probed(policies::EndpointId endpoint, bool ok) {
  locked(nullptr, nullptr, [&](Time now) {
    record(config::Probed{now, endpoint, {.ok = ok}});
    dispatcher_.probed(now, endpoint, {.ok = ok}, orders_);
  });
}

void DispatchHost::set_by_hand(policies::EndpointId endpoint, const policies::HandSetting& setting) {
  locked(nullptr, nullptr, [&](Time now) {
    record(config::SetByHand{now, endpoint, setting});
    dispatcher_.set_by_hand(now, endpoint, setting, orders_);
  });
}

void DispatchHost::replan(const config::Catalog& catalog, std::string event_log_line) {
  locked(nullptr, nullptr, [&](Time now) {
    // Requests of removed backends may still be on their way: their targets stay.
    if (targets_.size() < catalog.targets.size()) targets_.resize(catalog.targets.size());
    for (std::size_t i = 0; i < catalog.targets.size(); ++i) {
      if (catalog.targets[i] != nullptr) targets_[i] = catalog.targets[i];
    }
    if (event_log_ != nullptr) {
      event_log_->set_first_line(std::move(event_log_line));
      event_log_->add(config::Replanned{now, catalog.plan});
    }
    dispatcher_.replan(now, catalog.plan, orders_);
  });
}

void DispatchHost::tick() {
  locked(nullptr, nullptr, [&](Time now) {
    promised_wake_ = never;
    record(config::Ticked{now});
    dispatcher_.tick(now, orders_);
  });
}

void DispatchHost::flush_event_log() {
  if (event_log_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  event_log_->flush();
}

void DispatchHost::snapshot(policies::Snapshot& out) {
  const std::lock_guard lock(mutex_);
  dispatcher_.snapshot(out);
}

bool DispatchHost::any_servable(const config::Catalog& catalog) {
  const std::lock_guard lock(mutex_);
  const Time now = std::chrono::steady_clock::now();
  for (const policies::RoutePlan& route : catalog.plan.routes) {
    if (dispatcher_.servable(now, route.id)) return true;
  }
  return false;
}

}  // namespace headgate::gateway
