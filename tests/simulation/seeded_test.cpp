// Seeded histories of whole gateways in virtual time, the serving Dispatcher among them. While they are played and
// after them the books must be right. HEADGATE_SEED=17 plays that one, HEADGATE_SEEDS=5000 so many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "random_world.hpp"

namespace headgate::loadtest {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t usual) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
}

// After each event: no server over its limit, no queue over its bound, nobody counted who is not there.
void check_books(const policies::Dispatcher& dispatcher, const World& world, policies::Snapshot& seen) {
  dispatcher.snapshot(seen);
  std::uint32_t in_flight = 0;
  std::uint64_t failures = 0;
  for (const policies::EndpointState& endpoint : seen.endpoints) {
    ASSERT_LE(endpoint.in_flight, endpoint.max_in_flight);
    in_flight += endpoint.in_flight;
    failures += endpoint.failures_total;
  }
  for (const policies::PoolState& pool : seen.pools) {
    for (const policies::PoolPlan& planned : world.settings.catalog->plan.pools) {
      if (planned.id != pool.id) continue;
      // Who was admitted once may wait for another try when the queue is full.
      ASSERT_LE(pool.queued, planned.queue.requests_max + failures);
    }
    ASSERT_LE(pool.queued, seen.waiting);
  }
  ASSERT_LE(seen.requests, world.plan.size());
  ASSERT_EQ(in_flight + seen.waiting, seen.requests) << "everybody runs or waits";
}

void check_end(const World& world, const RunResult& result, const policies::Snapshot& last) {
  EXPECT_EQ(last.requests, 0u);
  EXPECT_EQ(last.waiting, 0u);
  std::uint64_t started = 0, attempts = 0, ends = 0;
  for (const policies::EndpointState& endpoint : last.endpoints) {
    EXPECT_EQ(endpoint.in_flight, 0u);
    started += endpoint.attempts_total;
  }
  for (const policies::PoolState& pool : last.pools) {
    EXPECT_EQ(pool.queued, 0u);
    EXPECT_EQ(pool.queued_bytes, 0u);
  }
  for (std::size_t n = 0; n < world.plan.size(); ++n) {
    const Record& record = result.records[n];
    SCOPED_TRACE("request " + std::to_string(n));
    EXPECT_NE(record.outcome, Outcome::pending);
    EXPECT_GE(record.ended, record.intended);
    EXPECT_LE(record.sends, world.settings.callers.retries + 1);
    EXPECT_LE(record.attempts, world.attempts_max * record.sends);
    if (record.outcome == Outcome::ok) {
      EXPECT_EQ(record.content_events, world.plan[n].output);
    } else if (record.outcome == Outcome::cut) {
      EXPECT_TRUE(record.stream);
      EXPECT_GT(record.content_events, 0u);
    } else if (record.stream) {
      EXPECT_EQ(record.content_events, 0u) << "who has seen content is cut or served";
    }
    attempts += record.attempts;
  }
  for (const std::uint64_t outcome : result.tally.outcomes) ends += outcome;
  EXPECT_EQ(ends, world.plan.size()) << "each ends once";
  EXPECT_EQ(attempts, started);
}

void check_same(const RunResult& a, const RunResult& b) {
  for (std::size_t n = 0; n < a.records.size(); ++n) {
    const Record &one = a.records[n], &other = b.records[n];
    ASSERT_EQ(one.outcome, other.outcome) << n;
    ASSERT_EQ(one.ended, other.ended) << n;
    ASSERT_EQ(one.first, other.first) << n;
    ASSERT_EQ(one.attempts, other.attempts) << n;
    ASSERT_EQ(a.names[one.backend], b.names[other.backend]) << n;
  }
}

TEST(SeededWorlds, KeepTheirBooksAndEndEveryRequestOnce) {
  const std::uint64_t only = from_environment("HEADGATE_SEED", 0), seeds = from_environment("HEADGATE_SEEDS", 1000);
  std::map<std::string, std::uint64_t> seen;
  for (std::uint64_t seed = only != 0 ? only : 1; seed <= (only != 0 ? only : seeds); ++seed) {
    World world(seed);
    policies::Snapshot now;
    world.settings.watch = [&](const policies::Dispatcher& dispatcher) { check_books(dispatcher, world, now); };
    const RunResult result = simulate(world.settings, world.plan);
    check_end(world, result, now);
    for (const Record& record : result.records)
      ++seen[std::string(name_of(record.outcome)) + " " + result.names[record.reason]];
    if (seed % 10 == 0) {
      World again(seed);
      check_same(result, simulate(again.settings, again.plan));
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "HEADGATE_SEED=" << seed << " build/release/tests_simulation";
  }
  if (only != 0) return;
  for (const char* end : {"ok ", "refused queue_full", "refused deadline_unmeetable", "refused deadline_exceeded",
                          "refused no_healthy_backend", "failed_before_first_token upstream_failed",
                          "failed_before_first_token upstream_timeout", "failed_before_first_token upstream_status",
                          "cut stream_cut", "left "}) {
    EXPECT_GE(seen[end], seeds) << end;
    std::printf("%8llu  %s\n", static_cast<unsigned long long>(seen[end]), end);
    seen.erase(end);
  }
  for (const auto& [end, times] : seen) std::printf("%8llu  %s\n", static_cast<unsigned long long>(times), end.c_str());
}

}  // namespace
}  // namespace headgate::loadtest
