#include "books.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <stdexcept>

#include "policies/answer_codes.hpp"
#include "random_world.hpp"

namespace headgate::loadtest {
namespace {

constexpr std::uint64_t events_max =
    100'000;  // of a world that does not end; the longest of seeds 1 to 1,000 has 8,656

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr std::array<const char*, 4> why_names{"first", "queued", "retry", "evacuation"};

void check(bool holds, const char* what) {
  if (!holds) throw Wrong(what);
}

bool is_free(const policies::EndpointState& endpoint) {
  return endpoint.planned && !endpoint.drained && endpoint.health == policies::HealthState::up &&
         endpoint.in_flight < endpoint.max_in_flight && endpoint.prefill_tokens < endpoint.prefill_tokens_max;
}

class Books {
 public:
  explicit Books(const World& world) : world_(world) { use(*world.settings.catalog); }

  void look(Time now, const policies::Dispatcher& dispatcher, const policies::Orders& orders) {
    check(++events_ < events_max, "it does not end");
    before_ = seen_;
    dispatcher.snapshot(seen_);
    const bool changed = take_changes(now);
    count_from_snapshot();
    look_at_counts();
    // What the first content of an answer opens is handed out by the tick that is due then.
    if (dispatcher.next_wake() > now)
      check(!somebody_waits_beside_a_free_server(), "somebody waits beside a free server");
    for (const policies::Order& order : orders) {
      if (const auto* start = std::get_if<policies::Start>(&order.what)) look_at_start(now, order, *start, changed);
      if (const auto* answer = std::get_if<policies::Answer>(&order.what)) {
        check(answered_.insert(order.request).second, "answered twice");
        ++ordered_["answer " + std::string(policies::answer_code(answer->code).name)];
      }
    }
  }

  void look_at_end(const RunResult& result) const {
    check(result.tally.whole().ended == world_.plan.size(), "a request never ended");
    check(seen_.requests == 0 && seen_.waiting == 0, "someone is counted after the end");
    check(seen_.tenants.empty(), "a tenant's request is counted after the end");
    std::uint64_t attempts = 0, ends = 0;
    for (const policies::EndpointState& endpoint : seen_.endpoints)
      check(endpoint.in_flight == 0, "a slot is held after the end");
    for (const policies::PoolState& pool : seen_.pools)
      check(pool.queued == 0 && pool.queued_bytes == 0, "a place in a queue is held after the end");
    for (std::size_t n = 0; n < world_.plan.size(); ++n) {
      look_at_record(world_.plan[n], result.records[n]);
      attempts += result.records[n].attempts;
    }
    for (const std::uint64_t outcome : result.tally.outcomes) ends += outcome;
    check(ends == world_.plan.size(), "a request ended more than once");
    check(attempts == starts_, "attempts are counted wrong");
    if (!reloaded_) check(totals_.attempts == starts_, "servers count other attempts than were ordered");
    // A server's counts leave with it: then each attempt may have been a success.
    const auto successes = static_cast<double>(reloaded_ ? starts_ : totals_.successes);
    const double credit = budget_initial_ + budget_per_success_ * successes;
    check(static_cast<double>(retries_) <= credit + static_cast<double>(retried_.size()) + 1e-6,
          "over the retry budget");
  }

  const std::map<std::string, std::uint64_t>& ordered() const { return ordered_; }

 private:
  struct Totals {
    std::uint64_t attempts = 0, failures = 0, successes = 0;
  };

  void use(const config::Catalog& catalog) {
    members_.clear();
    for (const policies::PoolPlan& pool : catalog.plan.pools) {
      queue_max_[pool.id] = pool.queue.requests_max;
      for (const policies::BackendPlan& backend : pool.backends) members_[pool.id].insert(backend.endpoint);
    }
    const policies::RoutePlan& route = catalog.plan.routes.at(0);
    // Then a free server may be in a pool that the request may not use, or not yet.
    choosy_ = route.budget.ttft || route.budget.min_quality || route.order == policies::PoolOrder::fastest ||
              route.order == policies::PoolOrder::cheapest_within_budget ||
              std::ranges::any_of(world_.settings.classes, [](const TrafficClass& of) {
                return of.min_quality > 0 || of.max_cost_usd < policies::unlimited_usd;
              });
    attempts_max_ = std::max(attempts_max_, route.retry.attempts_max);
    budget_initial_ += route.retry.budget_initial;  // a route that comes anew has its own
    budget_per_success_ = std::max(budget_per_success_, route.retry.budget_per_success);
  }

  // True: a reload or an operator came in between.
  bool take_changes(Time now) {
    const std::size_t old = changes_;
    const auto& changes = world_.settings.changes;
    for (; changes_ < changes.size() && sim_start + changes[changes_].at <= now; ++changes_) {
      if (changes[changes_].reload == nullptr) continue;
      use(*changes[changes_].reload);
      reloaded_ = true;
      moved_ += before_.waiting;
    }
    return changes_ != old;
  }

  void count_from_snapshot() {
    totals_ = {};
    for (const policies::EndpointState& endpoint : seen_.endpoints) {
      totals_.attempts += endpoint.attempts_total;
      totals_.successes += endpoint.successes_total;
      failures_seen_[endpoint.id] = std::max(failures_seen_[endpoint.id], endpoint.failures_total);
    }
    for (const auto& [id, failures] : failures_seen_) totals_.failures += failures;
  }

  const policies::EndpointState* before(policies::EndpointId id) const {
    for (const policies::EndpointState& endpoint : before_.endpoints) {
      if (endpoint.id == id) return &endpoint;
    }
    return nullptr;
  }

  // No server over its limit, no queue over its bound, nobody counted who is not there.
  void look_at_counts() const {
    std::uint32_t in_flight = 0;
    for (const policies::EndpointState& endpoint : seen_.endpoints) {
      const policies::EndpointState* const old = before(endpoint.id);  // a reload may have lowered its limit
      const bool within = endpoint.in_flight <= endpoint.max_in_flight || (old && endpoint.in_flight <= old->in_flight);
      check(within, "a server over its limit");
      in_flight += endpoint.in_flight;
    }
    for (const policies::PoolState& pool : seen_.pools) {
      // Who was admitted once may wait for another try, or move with a reload, when the queue is full.
      check(pool.queued <= 2 * queue_max_.at(pool.id) + totals_.failures + moved_, "a queue over its bound");
      check(pool.queued <= seen_.waiting, "more in a queue than wait");
      check((pool.queued == 0) == (pool.queued_bytes == 0), "bytes of nobody in a queue");
    }
    check(seen_.requests <= world_.plan.size(), "more requests than there are");
    check(in_flight + seen_.waiting == seen_.requests, "someone neither runs nor waits");
  }

  // While nothing has failed, so that nobody avoids a server.
  bool somebody_waits_beside_a_free_server() const {
    if (totals_.failures > 0) return false;
    for (const policies::PoolState& pool : seen_.pools) {
      if (pool.queued == 0) continue;
      for (const policies::EndpointState& endpoint : seen_.endpoints) {
        const auto members = members_.find(pool.id);
        if (is_free(endpoint) && members != members_.end() && members->second.contains(endpoint.id)) return true;
      }
    }
    return false;
  }

  void look_at_start(Time now, const policies::Order& order, const policies::Start& start, bool changed) {
    check(now < start.end_by && now < start.first_byte_by, "started after its deadline");
    check(!answered_.contains(order.request), "started after its answer");
    const policies::EndpointState* const old = before(start.endpoint);
    for (const policies::EndpointState& now_is : seen_.endpoints) {
      if (changed || old == nullptr || now_is.id != start.endpoint) continue;
      check(!(old->drained && now_is.drained), "started at a server drained by hand");
      check(old->planned || now_is.planned, "started at a server that a reload took away");
    }
    ++starts_;
    ++ordered_["start " + std::string(why_names[static_cast<std::size_t>(start.why)])];
    std::set<policies::EndpointId>& tried = tried_[order.request];
    const bool again = !tried.insert(start.endpoint).second;
    if (start.why == policies::Why::retry) {
      ++retries_;
      retried_.insert(order.request);
    }
    if (!again || choosy_ || changed) return;
    for (const policies::EndpointState& other : seen_.endpoints) {
      const policies::EndpointState* const other_before = before(other.id);
      const bool all_along = other_before != nullptr && is_free(*other_before) && is_free(other);
      check(!all_along || tried.contains(other.id), "the same server again though another was free");
    }
  }

  void look_at_record(const Planned& planned, const Record& record) const {
    check(record.outcome != Outcome::pending, "a request has no outcome");
    check(record.ended >= record.intended, "ended before it began");
    check(record.sends <= world_.settings.callers.retries + 1, "sent too often");
    check(record.attempts <= attempts_max_ * record.sends, "more attempts than allowed");
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
  policies::Snapshot seen_, before_;  // before_: this event
  std::size_t changes_ = 0;           // that have been made
  bool reloaded_ = false, choosy_ = false;
  std::uint64_t events_ = 0, starts_ = 0, retries_ = 0;
  std::uint64_t moved_ = 0;  // waiting at the reloads
  Totals totals_;
  std::map<policies::EndpointId, std::uint64_t> failures_seen_;
  std::uint32_t attempts_max_ = 0;
  double budget_initial_ = 0, budget_per_success_ = 0;
  std::map<std::string, std::uint64_t> ordered_;
  std::map<policies::RequestId, std::set<policies::EndpointId>> tried_;
  std::set<policies::RequestId> answered_, retried_;
};

void check_same(const RunResult& a, const RunResult& b) {
  for (std::size_t n = 0; n < a.records.size(); ++n) {
    const Record &one = a.records[n], &other = b.records[n];
    check(one.outcome == other.outcome && one.ended == other.ended && one.first == other.first &&
              one.attempts == other.attempts && a.names[one.backend] == b.names[other.backend],
          "the same seed, with the Dispatcher restored from its image now and then, went another way");
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
    played.orders = books.ordered();
    if (seed % 10 != 0) return played;
    World again(seed);
    std::uint64_t events = 0, restored = 0;
    again.settings.watch = [&](Time, policies::Dispatcher& dispatcher, const auto&) {
      if (++events % 97 != 0) return;
      check(dispatcher.restore(dispatcher.image()), "a Dispatcher did not take its own image");
      ++restored;
    };
    check_same(result, simulate(again.settings, again.plan));
  } catch (const Wrong& wrong) {
    played.wrong = wrong.what();
  }
  return played;
}

}  // namespace headgate::loadtest
