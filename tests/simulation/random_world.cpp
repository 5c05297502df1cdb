#include "random_world.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/load.hpp"
#include "policies/base/random.hpp"

namespace headgate::loadtest {

using nlohmann::json;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t below(std::uint32_t bound) { return headgate::below(draw(seed_, 0, ++n_), bound); }
  std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  Nanos up_to(Nanos most) {
    return Nanos{static_cast<std::int64_t>(unit(draw(seed_, 1, ++n_)) * static_cast<double>(most.count()))};
  }
  std::string ms(std::uint32_t low, std::uint32_t high) { return std::to_string(between(low, high)) + "ms"; }

 private:
  std::uint64_t seed_, n_ = 0;
};

namespace {

using namespace std::chrono_literals;

json random_pool(Dice& dice, std::uint32_t number, const json& probe, const json& limit) {
  json pool;
  constexpr const char* balances[] = {"p2c", "least_in_flight", "round_robin", "weighted"};
  pool["balance"] = balances[dice.below(4)];
  constexpr const char* orders[] = {"deadline", "fifo", "adaptive_lifo"};
  pool["queue"] = {{"requests_max", dice.below(dice.one_in(2) ? 12 : 60)},
                   {"wait_max", dice.ms(50, 3000)},
                   {"order", orders[dice.below(3)]}};
  pool["probe"] = probe;
  pool["limit"] = limit;
  const std::uint32_t own = dice.between(1, 4);
  for (std::uint32_t n = 0; n < own; ++n) {
    pool["backends"].push_back({{"url", "http://127.0.0.1:" + std::to_string(9001 + number * 10 + n)},
                                {"slots", dice.between(1, dice.one_in(2) ? 3 : 12)},
                                {"weight", dice.between(1, 3)}});
  }
  // A server of several pools, which share its slots.
  if (dice.one_in(2)) pool["backends"].push_back({{"url", "http://127.0.0.1:9000"}, {"slots", 3}});
  return pool;
}

constexpr std::array class_words{"interactive", "standard", "batch", "sheddable"};

// Limits, classes and weights that matter to a handful of requests.
void add_tenants(Dice& dice, json& config) {
  for (std::uint32_t n = 0; n < 3; ++n) {
    json tenant = {{"weight", dice.between(1, 4)}, {"class", class_words[dice.below(4)]}};
    if (dice.one_in(3)) tenant["limits"]["requests_per_minute"] = dice.between(1, dice.one_in(2) ? 10 : 200);
    if (dice.one_in(3)) tenant["limits"]["tokens_per_minute"] = dice.between(300, dice.one_in(2) ? 3000 : 50'000);
    if (dice.one_in(3)) tenant["limits"]["concurrency"] = dice.between(1, 6);
    config["tenants"]["t" + std::to_string(n)] = tenant;
  }
  if (dice.one_in(3)) config["classes"]["batch"] = {{"weight", dice.between(1, 20)}, {"floor", 0.1}};
  if (dice.one_in(3)) config["classes"]["interactive"]["budget"]["ttft"] = dice.ms(100, 2000);
  if (dice.one_in(3)) config["classes"]["sheddable"]["wait_max"] = dice.ms(10, 500);
}

// Pools that differ, and a route that minds.
void add_offers(Dice& dice, json& config) {
  for (auto& [name, pool] : config["pools"].items()) {
    pool["price"] = {{"input", dice.below(3)}, {"output", dice.below(10)}};
    pool["quality"] = dice.below(11) / 10.0;
    pool["weight"] = dice.between(1, 3);
  }
  constexpr std::array orders{"priority", "cheapest_within_budget", "fastest", "weighted"};
  for (auto& [name, route] : config["routes"].items()) {
    route["order"] = orders[dice.below(4)];
    if (dice.one_in(3)) route["budget"]["itl"] = dice.ms(5, 60);
    if (dice.one_in(3)) route["budget"]["total"] = dice.ms(500, 10'000);
    if (dice.one_in(4)) route["budget"]["min_quality"] = dice.below(8) / 10.0;
  }
}

json random_config(Dice& dice) {
  json config = {{"listen", {{"allow_anonymous", true}}}, {"seed", dice.below(1000)}};
  const std::uint32_t pools = dice.between(1, 3);
  json names = json::array();
  // One for all: pools that share a server must agree on it.
  const json probe = {{"interval", dice.ms(200, 2000)}, {"timeout", "100ms"}, {"fall", dice.between(1, 3)}};
  json limit = {{"mode", dice.one_in(3) ? "adaptive" : "static"}, {"itl", dice.ms(5, 60)}};
  if (dice.one_in(3)) limit["prefill_tokens_max"] = dice.between(1, 2000);
  for (std::uint32_t n = 0; n < pools; ++n) {
    const std::string name = "p" + std::to_string(n);
    config["pools"][name] = random_pool(dice, n, probe, limit);
    names.push_back(name);
  }
  json& route = config["routes"]["chat"];
  route["pools"] = names;
  if (dice.one_in(3)) route["budget"]["ttft"] = dice.ms(20, 800);
  route["retry"] = {
      {"attempts_max", dice.between(1, 4)}, {"budget_initial", dice.below(5)}, {"after_delivery", !dice.one_in(4)}};
  route["timeouts"] = {{"idle", dice.ms(300, 3000)},
                       {"first_token", dice.ms(200, 4000)},
                       {"first_byte", dice.ms(1000, 8000)},
                       {"total_unary", dice.ms(800, 20000)},
                       {"total_stream", dice.ms(800, 20000)}};
  if (dice.one_in(2)) add_tenants(dice, config);
  if (dice.one_in(2)) add_offers(dice, config);
  return config;
}

ServerState random_state(Dice& dice) {
  ServerState state;
  switch (dice.below(8)) {
    case 0:
    case 1:
    case 7:
      state.down = true;
      break;
    case 2:
      state.stalled = true;
      break;
    case 3:
      state.slowness = 1 + dice.below(30);
      break;
    case 4:
      state.status = std::array<std::uint16_t, 3>{429, 503, 401}[dice.below(3)];
      state.retry_after = dice.up_to(3s);
      break;
    case 5:
      state.no_socket = true;
      break;
    default:
      break;
  }
  return state;
}

// Often when the most is going on: many requests come in the middle.
Nanos some_time(Dice& dice, Nanos span) { return dice.one_in(2) ? span / 2 + dice.up_to(400ms) : dice.up_to(span); }

// With the old configuration or a new one, whose pools have the same names and partly the same servers.
json random_reload(Dice& dice, const json& config) {
  json next = dice.one_in(3) ? config : random_config(dice);
  if (dice.one_in(2)) {  // what was asked for is gone, and all that served it
    next["routes"] = {{"other", next["routes"]["chat"]}};
    json pools;
    for (const auto& [name, pool] : next["pools"].items()) pools["q" + name] = pool;
    next["pools"] = pools;
    for (auto& name : next["routes"]["other"]["pools"]) name = "q" + name.get<std::string>();
  }
  return next;
}

}  // namespace

void World::draw_changes(Dice& dice, const json& config, Nanos span) {
  if (!dice.one_in(2)) return;
  const std::uint32_t number = dice.between(1, 4);
  for (std::uint32_t n = 0; n < number; ++n) {
    SimChange change{.at = dice.one_in(3) ? span / 2 + dice.up_to(100ms) : some_time(dice, span)};
    if (dice.one_in(2)) {
      change.reload = catalog_of(random_reload(dice, config));
    } else {
      change.endpoint = policies::EndpointId{dice.below(endpoints)};
      if (dice.one_in(2)) change.by_hand.weight = dice.below(4);
      if (!change.by_hand.weight || dice.one_in(2)) change.by_hand.drained = dice.one_in(2);
    }
    settings.changes.push_back(std::move(change));
  }
  std::ranges::stable_sort(settings.changes, {}, &SimChange::at);
}

std::shared_ptr<const config::Catalog> World::catalog_of(const json& config) {
  auto loaded = config::load_text(config.dump(1), [](const std::string&) { return std::nullopt; });
  for (const config::Problem& problem : loaded.problems) ADD_FAILURE() << config::to_text(problem, config.dump(1));
  auto catalog = config::make_catalog(std::move(loaded.options.value()), ids, ++catalogs_);
  for (const auto& endpoint : catalog->plan.endpoints)
    endpoints = std::max(endpoints, static_cast<std::uint32_t>(policies::index(endpoint.id)) + 1);
  return catalog;
}

World::World(std::uint64_t seed) {
  Dice dice(mix64(seed));
  const json config = random_config(dice);
  settings.catalog = catalog_of(config);
  settings.classes.clear();
  for (std::uint32_t n = 0; n < 4; ++n) {  // a tenant that the configuration does not know is nobody's
    settings.classes.push_back({.name = std::to_string(n),
                                .model = "chat",
                                .klass = static_cast<policies::Class>(dice.below(4)),
                                .tenant_id = policies::TenantId{n},
                                .max_cost_usd = dice.one_in(8) ? dice.below(100) / 1e5 : policies::unlimited_usd,
                                .min_quality = dice.one_in(8) ? dice.below(8) / 10.0 : 0});
  }
  const bool mixed = dice.one_in(2);
  settings.network = dice.up_to(2ms);
  settings.callers = {.retries = dice.below(3), .seed = seed};
  if (dice.one_in(2)) settings.callers.patience = 100ms + dice.up_to(6s);

  const Nanos span = 3s + dice.up_to(20s);
  draw_changes(dice, config, span);
  constexpr const char* profiles[] = {"demo", "llama-3.1-8b-h100", "qwen3-32b-2xh100"};
  for (std::uint32_t n = 0; n < endpoints; ++n) {
    engine::Profile profile = *engine::find_profile(profiles[dice.below(3)]);
    if (dice.one_in(4)) profile.queue_max = profile.slots = dice.between(1, 3);  // fewer than the gateway believes
    settings.profiles.push_back(profile);
  }
  const std::uint32_t faults = dice.below(10);
  for (std::uint32_t n = 0; n < faults; ++n) {
    settings.faults.push_back({.at = some_time(dice, span),
                               .endpoint = policies::EndpointId{dice.below(endpoints)},
                               .state = random_state(dice)});
  }
  if (dice.one_in(2)) {  // one dies while it has the most to do
    settings.faults.push_back({.at = span / 2 + 50ms + dice.up_to(300ms),
                               .endpoint = policies::EndpointId{dice.below(endpoints)},
                               .state = {.down = true}});
  }
  std::ranges::stable_sort(settings.faults, {}, &SimFault::at);

  const std::uint32_t requests = dice.between(20, 150);
  for (std::uint32_t n = 0; n < requests; ++n) {
    plan.push_back({.at = dice.one_in(6) ? span / 2 : dice.up_to(span),  // some all at once
                    .input = dice.between(1, 3000),
                    .output = dice.between(1, 150),
                    .stream = !dice.one_in(3),
                    .traffic_class = static_cast<std::uint8_t>(mixed ? dice.below(4) : 0)});
  }
  std::ranges::stable_sort(plan, {}, &Planned::at);
}

}  // namespace headgate::loadtest
