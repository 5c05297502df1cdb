#include "books.hpp"

#include <map>
#include <set>
#include <stdexcept>

#include "random_world.hpp"

namespace headgate::loadtest {
namespace {

constexpr std::uint64_t events_max =
    100'000;  // of a world that does not end; the longest of seeds 1 to 1,000 has 8,656

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(bool holds, const char* what) {
  if (!holds) throw Wrong(what);
}

bool is_free(const policies::EndpointState& endpoint) {
  return endpoint.health == policies::HealthState::up && endpoint.in_flight < endpoint.max_in_flight;
}

class Books {
 public:
  explicit Books(const World& world) : world_(world) {
    for (const policies::PoolPlan& pool : world.settings.catalog->plan.pools) {
      queue_max_[pool.id] = pool.queue.requests_max;
      for (const policies::BackendPlan& backend : pool.backends) members_[pool.id].insert(backend.endpoint);
    }
  }

  void look(Time now, const policies::Dispatcher& dispatcher, const policies::Orders& orders) {
    check(++events_ < events_max, "it does not end");
    free_before_.clear();
    for (const policies::EndpointState& endpoint : seen_.endpoints) {
      if (is_free(endpoint)) free_before_.insert(endpoint.id);
    }
    dispatcher.snapshot(seen_);
    look_at_counts();
    // What the first content of an answer opens is handed out by the tick that is due then.
    if (dispatcher.next_wake() > now)
      check(!somebody_waits_beside_a_free_server(), "somebody waits beside a free server");
    for (const policies::Order& order : orders) {
      if (const auto* start = std::get_if<policies::Start>(&order.what)) look_at_start(now, order, *start);
      if (std::holds_alternative<policies::Answer>(order.what))
        check(answered_.insert(order.request).second, "answered twice");
    }
  }

  void look_at_end(const RunResult& result) const {
    check(result.tally.whole().ended == world_.plan.size(), "a request never ended");
    check(seen_.requests == 0 && seen_.waiting == 0, "someone is counted after the end");
    std::uint64_t started = 0, attempts = 0, ends = 0, successes = 0;
    for (const policies::EndpointState& endpoint : seen_.endpoints) {
      check(endpoint.in_flight == 0, "a slot is held after the end");
      started += endpoint.attempts_total;
      successes += endpoint.successes_total;
    }
    for (const policies::PoolState& pool : seen_.pools)
      check(pool.queued == 0 && pool.queued_bytes == 0, "a place in a queue is held after the end");
    for (std::size_t n = 0; n < world_.plan.size(); ++n) {
      look_at_record(world_.plan[n], result.records[n]);
      attempts += result.records[n].attempts;
    }
    for (const std::uint64_t outcome : result.tally.outcomes) ends += outcome;
    check(ends == world_.plan.size(), "a request ended more than once");
    check(attempts == started, "attempts are counted wrong");
    const policies::RetryOptions& retry = world_.settings.catalog->plan.routes.at(0).retry;
    const double credit = retry.budget_initial + retry.budget_per_success * static_cast<double>(successes);
    check(static_cast<double>(retries_) <= credit + static_cast<double>(retried_.size()) + 1e-6,
          "over the retry budget");
  }

 private:
  // No server over its limit, no queue over its bound, nobody counted who is not there.
  void look_at_counts() const {
    std::uint32_t in_flight = 0;
    std::uint64_t failures = 0;
    for (const policies::EndpointState& endpoint : seen_.endpoints) {
      check(endpoint.in_flight <= endpoint.max_in_flight, "a server over its limit");
      in_flight += endpoint.in_flight;
      failures += endpoint.failures_total;
    }
    for (const policies::PoolState& pool : seen_.pools) {
      // Who was admitted once may wait for another try when the queue is full.
      check(pool.queued <= queue_max_.at(pool.id) + failures, "a queue over its bound");
      check(pool.queued <= seen_.waiting, "more in a queue than wait");
      check((pool.queued == 0) == (pool.queued_bytes == 0), "bytes of nobody in a queue");
    }
    check(seen_.requests <= world_.plan.size(), "more requests than there are");
    check(in_flight + seen_.waiting == seen_.requests, "someone neither runs nor waits");
  }

  // While nothing has failed, so that nobody avoids a server.
  bool somebody_waits_beside_a_free_server() const {
    std::uint64_t failures = 0;
    for (const policies::EndpointState& endpoint : seen_.endpoints) failures += endpoint.failures_total;
    if (failures > 0) return false;
    for (const policies::PoolState& pool : seen_.pools) {
      if (pool.queued == 0) continue;
      for (const policies::EndpointState& endpoint : seen_.endpoints) {
        if (is_free(endpoint) && members_.at(pool.id).contains(endpoint.id)) return true;
      }
    }
    return false;
  }

  void look_at_start(Time now, const policies::Order& order, const policies::Start& start) {
    check(now < start.end_by && now < start.first_byte_by, "started after its deadline");
    check(!answered_.contains(order.request), "started after its answer");
    std::set<policies::EndpointId>& tried = tried_[order.request];
    const bool again = !tried.insert(start.endpoint).second;
    if (start.why == policies::Why::retry) {
      ++retries_;
      retried_.insert(order.request);
    }
    if (!again || world_.settings.catalog->plan.routes.at(0).ttft_budget) return;
    for (const policies::EndpointState& other : seen_.endpoints) {
      const bool all_along = free_before_.contains(other.id) && is_free(other);
      check(!all_along || tried.contains(other.id), "the same server again though another was free");
    }
  }

  void look_at_record(const Planned& planned, const Record& record) const {
    check(record.outcome != Outcome::pending, "a request has no outcome");
    check(record.ended >= record.intended, "ended before it began");
    check(record.sends <= world_.settings.callers.retries + 1, "sent too often");
    check(record.attempts <= world_.attempts_max * record.sends, "more attempts than allowed");
    if (record.outcome == Outcome::ok) {
      check(record.content_events == planned.output, "an answer is not whole");
    } else if (record.outcome == Outcome::cut) {
      check(record.stream && record.content_events > 0, "cut, but nothing was seen");
    } else if (record.stream) {
      check(record.content_events == 0, "who has seen content is cut or served");
    }
  }

  const World& world_;
  std::map<policies::PoolId, std::uint32_t> queue_max_;
  std::map<policies::PoolId, std::set<policies::EndpointId>> members_;
  policies::Snapshot seen_;
  std::set<policies::EndpointId> free_before_;  // this event
  std::uint64_t events_ = 0, retries_ = 0;
  std::map<policies::RequestId, std::set<policies::EndpointId>> tried_;
  std::set<policies::RequestId> answered_, retried_;
};

void check_same(const RunResult& a, const RunResult& b) {
  for (std::size_t n = 0; n < a.records.size(); ++n) {
    const Record &one = a.records[n], &other = b.records[n];
    check(one.outcome == other.outcome && one.ended == other.ended && one.first == other.first &&
              one.attempts == other.attempts && a.names[one.backend] == b.names[other.backend],
          "the same seed went another way");
  }
}

}  // namespace

Played play_world(std::uint64_t seed) {
  Played played;
  try {
    World world(seed);
    Books books(world);
    world.settings.watch = [&](Time now, const auto& dispatcher, const auto& orders) {
      books.look(now, dispatcher, orders);
    };
    const RunResult result = simulate(world.settings, world.plan);
    books.look_at_end(result);
    for (const Record& record : result.records)
      ++played.ends[std::string(name_of(record.outcome)) + " " + result.names[record.reason]];
    if (seed % 10 != 0) return played;
    World again(seed);
    check_same(result, simulate(again.settings, again.plan));
  } catch (const Wrong& wrong) {
    played.wrong = wrong.what();
  }
  return played;
}

}  // namespace headgate::loadtest
