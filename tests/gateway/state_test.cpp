#include "gateway/state.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/catalogs.hpp"

namespace headgate::gateway {
namespace {

using namespace std::chrono_literals;

TEST(State, ShowsWhatTheGatewayHolds) {
  config::IdBook ids;
  auto options = two_pools();
  const auto catalog = config::make_catalog(options, ids, 3);
  NameBook names;
  names.learn(*catalog);

  policies::Snapshot snapshot;
  policies::EndpointState first;
  first.id = catalog->targets[0]->endpoint;
  first.planned = true;
  first.in_flight = 2;
  first.max_in_flight = 4;
  first.prefill_tokens = 700;
  first.mean_gap = std::chrono::microseconds(20500);
  first.attempts_total = 10;
  first.failures_total = 1;
  policies::EndpointState second = first;
  second.id = catalog->targets[1]->endpoint;
  second.health = policies::HealthState::ejected;
  second.out_until = Time(10s);
  second.probe_failures_total = 3;
  second.health_changes_total = 1;
  snapshot.endpoints = {first, second};
  snapshot.pools = {{catalog->plan.pools[0].id, 5, 5000, 2.5, {3, 2, 0, 0}}};
  policies::TenantState tenant;
  tenant.id = catalog->keys[0].tenant;
  tenant.requests = 6;
  tenant.rates.requests = {.limit = 60, .remaining = 54};
  snapshot.tenants = {tenant};
  snapshot.routes = {{catalog->routes.find("big")->second.id, 9.5}};
  snapshot.requests = 7;
  snapshot.waiting = 5;

  const std::string text = render_state({snapshot, *catalog, names, Time(8500ms), 61'250ms, true, 2, "pools: \"x\""});
  const auto expected = nlohmann::json::parse(R"({
    "version": 3, "draining": true, "uptime_s": 61.250, "requests": 7, "waiting": 5,
    "backends": [
      {"name": "fast/a", "pool": "fast", "endpoint": "127.0.0.1:9001", "health": "up", "drained": false, "weight_by_hand": 0, "in_flight": 2,
       "max_in_flight": 4, "prefill_tokens": 700, "mean_gap_us": 20500, "attempts": 10, "failures": 1, "probe_failures": 0, "health_changes": 0, "out_for_ms": 0,
       "removed": false},
      {"name": "fast/b", "pool": "fast", "endpoint": "127.0.0.1:9002", "health": "ejected", "drained": false, "weight_by_hand": 0, "in_flight": 2,
       "max_in_flight": 4, "prefill_tokens": 700, "mean_gap_us": 20500, "attempts": 10, "failures": 1, "probe_failures": 3, "health_changes": 1, "out_for_ms": 1500,
       "removed": false},
      {"name": "slow/c", "pool": "slow", "endpoint": "127.0.0.1:9002", "health": "ejected", "drained": false, "weight_by_hand": 0, "in_flight": 2,
       "max_in_flight": 4, "prefill_tokens": 700, "mean_gap_us": 20500, "attempts": 10, "failures": 1, "probe_failures": 3, "health_changes": 1, "out_for_ms": 1500,
       "removed": false}],
    "pools": [{"name": "fast", "queued": 5, "queued_bytes": 5000, "drain_per_s": 2.5,
               "queued_by_class": {"interactive": 3, "standard": 2, "batch": 0, "sheddable": 0}}],
    "tenants": [{"name": "all", "requests": 6, "requests_left": 54}],
    "routes": [{"name": "big", "retry_credit": 9.5}],
    "reload": {"version": 3, "failed": 2, "last_problem": "pools: \"x\""}})");
  EXPECT_EQ(nlohmann::json::parse(text), expected) << text;
  EXPECT_EQ(text.find("secret"), std::string::npos);
  EXPECT_EQ(text.find("sk-"), std::string::npos);
}

TEST(State, StillNamesABackendThatAReloadRemoved) {
  config::IdBook ids;
  auto options = two_pools();
  NameBook names;
  const auto before = config::make_catalog(options, ids, 1);
  names.learn(*before);
  options.pools["fast"].backends.erase(options.pools["fast"].backends.begin());
  const auto now = config::make_catalog(options, ids, 2);
  names.learn(*now);

  policies::Snapshot snapshot;
  policies::EndpointState gone;
  gone.id = before->targets[0]->endpoint;
  gone.planned = false;
  gone.in_flight = 1;
  snapshot.endpoints = {gone};
  const auto json = nlohmann::json::parse(render_state({snapshot, *now, names, {}, {}, false, 0, {}}));
  ASSERT_EQ(json["backends"].size(), 1u);
  EXPECT_EQ(json["backends"][0]["name"], "fast/a");
  EXPECT_EQ(json["backends"][0]["in_flight"], 1);
  EXPECT_EQ(json["backends"][0]["removed"], true);
}

}  // namespace
}  // namespace headgate::gateway
