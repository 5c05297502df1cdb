#include "gateway/metric_list.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <thread>

#include "gateway/catalogs.hpp"
#include "support/prometheus.hpp"

namespace headgate::gateway {
namespace {

using namespace std::chrono_literals;

// One gateway's worth of everything, with a different number in each place.
struct Filled {
  Filled() {
    auto options = two_pools();
    options.routes["odd \"name\"\\\n"].pools = {"fast"};
    catalog = config::make_catalog(options, ids, 3);
    names.learn(*catalog);
    fill_snapshot();
    fill_connections();
    fill_counters();
  }

  void fill_snapshot() {
    std::uint64_t n = 100;
    for (const auto& planned : catalog->plan.endpoints) {
      policies::EndpointState endpoint;
      endpoint.id = planned.id;
      endpoint.planned = true;
      endpoint.health = n == 100 ? policies::HealthState::up : policies::HealthState::down;
      endpoint.in_flight = static_cast<std::uint32_t>(n + 1);
      endpoint.max_in_flight = planned.max_in_flight;
      endpoint.attempts_total = n + 2;
      endpoint.failures_total = n + 3;
      endpoint.probe_failures_total = n + 4;
      endpoint.health_changes_total = n + 5;
      endpoint.ejections_total = n + 6;
      snapshot.endpoints.push_back(endpoint);
      n += 100;
    }
    snapshot.endpoints.push_back({policies::EndpointId{999}});  // nobody knows its name: left out
    snapshot.pools = {{catalog->plan.pools[0].id, 3, 3000, 1}, {catalog->plan.pools[1].id, 4, 4000, 1}};
    snapshot.routes = {{catalog->routes.find("big")->second.id, 9.5}};
  }

  void fill_connections() {
    const auto& cap = ids.connections()[policies::index(catalog->plan.endpoints[0].id)];
    held = cap->take_or_wait({});
    cap->most(3);
  }

  void fill_counters() {
    RouteCounters& big = counters.route(catalog->routes.find("big")->second.id);
    for (std::size_t i = 0; i < endings; ++i) big.requests[i].add(i + 1);
    big.input_tokens.add(1000);
    big.cached_tokens.add(100);
    big.output_tokens.add(10);
    big.ttft.observe(5ms);  // on a bound: counted under it
    big.ttft.observe(5ms + 1us);
    big.ttft.observe(600s);  // above every bound
    big.queue_wait.observe(-1ms);
    big.total.observe(1500ms);
    counters.without_route().requests[static_cast<std::size_t>(Ending::rejected)].add(2);
    counters.route(policies::RouteId{64}).requests[0].add();
    counters.route(policies::RouteId{60000}).requests[0].add();
    counters.refused(Refusal::queue_full);
    counters.refused(Refusal::upstream_failed);
    counters.refused(Refusal::upstream_overloaded);
    counters.requests_in_progress.add(9);
    counters.requests_in_progress.sub(4);
    counters.accept_pauses.add(20);
    for (std::size_t i = 0; i < closed_by_us; ++i) counters.connections_closed[i].add(70 + i);
    for (std::size_t i = 0; i < backends::tls_failures; ++i) {
      counters.tls_failures[i].add(40 + i);
      counters.upstream_tls_failures[i].add(60 + i);
    }
    counters.caller_connections.add(21);
    counters.upstream_connections.add(22);
    counters.stream_events.add(23);
    counters.sse_parse_errors.add(24);
    counters.cancelled_by_caller.add(25);
    counters.streams_cut.add(26);
    counters.usage_estimated.add(27);
    lock_held.observe(500ns);
    lock_held.observe(2001ns);
    lock_held.observe(1ms);
  }

  std::string render() const {
    return render_metrics({snapshot, counters, names, ids.connections(), lock_held, 3, 2, 1, 31, 34, true, 32, 33, true,
                           1'700'000'000.25, "0.1.0"});
  }

  config::IdBook ids;
  std::shared_ptr<const config::Catalog> catalog;
  NameBook names;
  HoldTimes lock_held;
  policies::Snapshot snapshot;
  ShardCounters counters;
  backends::ConnectionShare held;
};

// To renew after a wanted change: HEADGATE_WRITE_GOLDEN=1 tests_gateway --gtest_filter=Metrics.MatchTheGoldenText
TEST(Metrics, MatchTheGoldenText) {
  const std::string file = HEADGATE_SOURCE_DIR "/tests/gateway/golden/metrics.txt";
  const std::string text = Filled().render();
  if (std::getenv("HEADGATE_WRITE_GOLDEN") != nullptr) std::ofstream(file) << text;
  std::ifstream in(file);
  const std::string golden(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(text, golden);
}

TEST(Metrics, EveryFamilyOfTheListStandsInTheTextOnceAndUnderItsType) {
  const std::string text = Filled().render();
  const auto samples = support::parse_metrics(text);
  std::set<std::string_view> names;
  for (const Family& family : metric_list()) {
    EXPECT_TRUE(family.name.starts_with("headgate_"));
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_EQ(family.kind == Kind::counter, family.name.ends_with("_total")) << family.name;
    const std::string help = "# HELP " + std::string(family.name) + " " + std::string(family.help) + "\n";
    const std::size_t at = text.find(help);
    ASSERT_NE(at, std::string::npos) << help;
    EXPECT_EQ(text.find(help, at + 1), std::string::npos);
    EXPECT_EQ(text.compare(at + help.size(), 7, "# TYPE "), 0) << family.name;
    const std::string_view suffix = family.kind == Kind::histogram ? "_count" : "";
    bool found = false;
    for (const auto& sample : samples) {
      if (sample.name != std::string(family.name).append(suffix)) continue;
      found = true;
      std::set<std::string> expected;
      for (const auto& [label, value] : sample.labels) expected.insert(label);
      std::string_view rest = family.labels;
      while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        EXPECT_EQ(expected.erase(std::string(rest.substr(0, comma))), 1u) << family.name;
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
      }
      EXPECT_TRUE(expected.empty()) << family.name;
    }
    EXPECT_TRUE(found) << family.name;
  }
}

TEST(Metrics, SumOverShards) {
  Filled one, two;
  ShardCounters sum;
  sum.add(one.counters);
  sum.add(two.counters);
  const auto samples = support::parse_metrics(render_metrics(
      {one.snapshot, sum, one.names, {}, one.lock_held, 3, 2, 1, 31, 34, true, 32, 33, true, 0, "0.1.0"}));
  EXPECT_EQ(support::sum_of(samples, "headgate_requests_total", {{"route", "big"}}), 2 * 21);
  EXPECT_EQ(support::sum_of(samples, "headgate_requests_total", {{"route", "other"}}), 4);
  EXPECT_EQ(support::sum_of(samples, "headgate_requests_in_progress"), 10);
  EXPECT_EQ(support::sum_of(samples, "headgate_tokens_total", {{"direction", "input"}}), 2000);
  EXPECT_EQ(support::sum_of(samples, "headgate_refusals_total", {{"code", "upstream_failed"}}), 4);
  EXPECT_EQ(support::sum_of(samples, "headgate_ttft_seconds_count", {{"route", "big"}}), 6);
  EXPECT_EQ(support::sum_of(samples, "headgate_ttft_seconds_bucket", {{"route", "big"}, {"le", "0.005"}}), 2);
  EXPECT_EQ(support::sum_of(samples, "headgate_ttft_seconds_bucket", {{"route", "big"}, {"le", "300"}}), 4);
  EXPECT_EQ(support::sum_of(samples, "headgate_ttft_seconds_bucket", {{"route", "big"}, {"le", "+Inf"}}), 6);
  EXPECT_EQ(support::sum_of(samples, "headgate_connections_closed_total", {{"reason", "write_stall"}}), 2 * 71);
  EXPECT_EQ(support::sum_of(samples, "headgate_streams_cut_total"), 52);
  EXPECT_EQ(support::sum_of(samples, "headgate_usage_estimated_total"), 54);
}

TEST(Metrics, CanBeReadWhileAShardCounts) {
  ShardCounters counters;
  constexpr std::uint64_t rounds = 200'000;
  std::thread shard([&] {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      counters.stream_events.add();
      counters.route(policies::RouteId{0}).ttft.observe(1ms);
    }
  });
  std::uint64_t last = 0;
  while (last < rounds) {
    const std::uint64_t now = counters.stream_events.get();
    ASSERT_GE(now, last);
    last = now;
    ShardCounters sum;
    sum.add(counters);
    std::this_thread::yield();
  }
  shard.join();
  EXPECT_EQ(counters.routes[0].ttft.sum_us.get(), rounds * 1000);
}

}  // namespace
}  // namespace headgate::gateway
