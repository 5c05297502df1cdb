#include "config/catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "config/memory_limit.hpp"
#include "config_text.hpp"

namespace headgate::config {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr const char* two_pools = R"({
  "seed": 7,
  "keys": [
    {"name": "plain", "key": "foo", "routes": ["embed", "chat"]},
    {"name": "hashed", "sha256": "2C26B46B68FFC68FF99B453C1D30413413422D706483BFA0F98A5E886266E7AF"}
  ],
  "pools": {
    "small": {
      "model": "m-1", "api_key": "sk-1", "balance": "least_in_flight",
      "queue": {"requests_max": 5, "bytes_max": "1MiB", "wait_max": "3s"},
      "probe": {"path": "/ping", "interval": "2s", "timeout": "1s", "fall": 4, "rise": 1},
      "health": {"consecutive_failures": 9, "cooldown_last_backend": "try"},
      "backends": [{"url": "http://127.0.0.1:9001", "slots": 4, "weight": 3},
                   {"name": "x", "url": "http://GPU.local", "slots": 8}]
    },
    "large": {
      "forward_client_auth": true, "reports_usage": false,
      "probe": {"path": "/ping", "interval": "2s", "timeout": "1s", "fall": 4, "rise": 1},
      "health": {"consecutive_failures": 9, "cooldown_last_backend": "try"},
      "backends": [{"url": "http://gpu.local:80", "slots": 8}, {"url": "http://[::1]:9003"}]
    }
  },
  "routes": {
    "chat": {"pools": ["small", "large"], "budget": {"ttft": "1s"}, "head_hold": "10ms",
             "timeouts": {"connect": "250ms"}, "retry": {"attempts_max": 2}},
    "embed": {"pools": ["large"]}
  }
})";

Options options_of(std::string_view text) {
  Loaded loaded = load(text);
  if (!loaded.options) throw std::runtime_error(all_of(loaded));
  return *loaded.options;
}

class CatalogTest : public testing::Test {
 protected:
  CatalogTest() : catalog_(make_catalog(options_of(two_pools), ids_, 3)) {}

  const policies::PoolPlan& pool(const std::string& name) {
    const policies::PoolId id = ids_.pool(name);
    for (const auto& plan : catalog_->plan.pools) {
      if (plan.id == id) return plan;
    }
    throw std::out_of_range(name);
  }
  const Target& target(const std::string& pool_name, std::size_t position) {
    return *catalog_->targets.at(index(pool(pool_name).backends.at(position).id));
  }

  IdBook ids_;
  std::shared_ptr<const Catalog> catalog_;
};

TEST_F(CatalogTest, HoldsThePlanOfEveryPool) {
  EXPECT_EQ(catalog_->version, 3u);
  EXPECT_EQ(catalog_->plan.seed, 7u);
  ASSERT_EQ(catalog_->plan.pools.size(), 2u);
  EXPECT_EQ(pool("small").balance, policies::Balance::least_in_flight);
  EXPECT_EQ(pool("large").balance, policies::Balance::p2c);
  EXPECT_EQ(pool("small").queue.requests_max, 5u);
  EXPECT_EQ(pool("small").queue.bytes_max, 1u << 20);
  EXPECT_EQ(pool("small").queue.wait_max, 3s);
  ASSERT_EQ(pool("small").backends.size(), 2u);
  EXPECT_EQ(pool("small").backends[0].weight, 3u);
  EXPECT_EQ(pool("small").backends[1].weight, 1u);
}

TEST_F(CatalogTest, OneUrlInTwoPoolsIsOneEndpointAndTwoBackends) {
  const auto& mine = pool("small").backends[1];
  const auto& theirs = pool("large").backends[0];
  EXPECT_EQ(mine.endpoint, theirs.endpoint);
  EXPECT_NE(mine.id, theirs.id);
  ASSERT_EQ(catalog_->plan.endpoints.size(), 3u);
  ASSERT_EQ(catalog_->probes.size(), 3u);
  for (const auto& endpoint : catalog_->plan.endpoints) {
    const std::uint32_t slots = endpoint.id == mine.endpoint                        ? 8u
                                : endpoint.id == pool("small").backends[0].endpoint ? 4u
                                                                                    : 16u;
    EXPECT_EQ(endpoint.max_in_flight, slots);
  }
}

TEST_F(CatalogTest, HealthTakesItsProbeFiguresFromTheProbe) {
  for (const auto& endpoint : catalog_->plan.endpoints) {
    EXPECT_EQ(endpoint.health.probe_fall, 4u);
    EXPECT_EQ(endpoint.health.probe_rise, 1u);
    EXPECT_EQ(endpoint.health.probe_interval, 2s);
    EXPECT_EQ(endpoint.health.consecutive_failures, 9u);
    EXPECT_EQ(endpoint.health.cooldown_last_backend, policies::LastCooling::attempt);
  }
  for (const ProbeTarget& probe : catalog_->probes) {
    EXPECT_EQ(probe.probe.path, "/ping");
    EXPECT_EQ(probe.probe.timeout, 1s);
  }
}

TEST_F(CatalogTest, TargetsSayWhereAndHow) {
  const Target& first = target("small", 0);
  EXPECT_EQ(first.name, "small/b1");
  EXPECT_EQ(first.pool, "small");
  EXPECT_EQ(first.host, "127.0.0.1");
  EXPECT_EQ(first.port, 9001);
  EXPECT_EQ(first.authority, "127.0.0.1:9001");
  EXPECT_EQ(first.model, "m-1");
  EXPECT_EQ(first.authorization, "Bearer sk-1");
  EXPECT_FALSE(first.forward_client_auth);
  EXPECT_TRUE(first.reports_usage);
  EXPECT_THAT(first.never_shown, UnorderedElementsAre("127.0.0.1:9001", "127.0.0.1", "sk-1"));

  const Target& second = target("small", 1);
  EXPECT_EQ(second.name, "small/x");
  EXPECT_EQ(second.host, "gpu.local");
  EXPECT_EQ(second.port, 80);
  EXPECT_EQ(second.authority, "gpu.local");

  const Target& third = target("large", 1);
  EXPECT_EQ(third.name, "large/b2");
  EXPECT_EQ(third.host, "::1");
  EXPECT_EQ(third.authority, "[::1]:9003");
  EXPECT_EQ(third.authorization, "");
  EXPECT_EQ(third.model, "");
  EXPECT_TRUE(third.forward_client_auth);
  EXPECT_FALSE(third.reports_usage);
  EXPECT_THAT(third.never_shown, ElementsAre("[::1]:9003"));  // "::1" alone could be part of anything
}

TEST_F(CatalogTest, RoutesAreFoundByName) {
  const auto chat = catalog_->routes.find(std::string_view("chat"));
  ASSERT_NE(chat, catalog_->routes.end());
  EXPECT_EQ(chat->second.head_hold, 10ms);
  EXPECT_EQ(catalog_->routes.find(std::string_view("nope")), catalog_->routes.end());
  ASSERT_EQ(catalog_->plan.routes.size(), 2u);
  for (const auto& plan : catalog_->plan.routes) {
    if (plan.id != chat->second.id) continue;
    EXPECT_THAT(plan.pools, ElementsAre(ids_.pool("small"), ids_.pool("large")));
    EXPECT_EQ(plan.budget.ttft, 1s);
    EXPECT_EQ(plan.timeouts.connect, 250ms);
    EXPECT_EQ(plan.timeouts.idle, policies::TimeoutOptions{}.idle);
    EXPECT_EQ(plan.retry.attempts_max, 2u);
  }
}

TEST_F(CatalogTest, KeysAreDigestsWithTheirRoutes) {
  ASSERT_EQ(catalog_->keys.size(), 2u);
  const Key& plain = catalog_->keys[0];
  EXPECT_EQ(plain.name, "plain");
  EXPECT_EQ(plain.sha256, digest_from_hex("2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"));
  EXPECT_FALSE(plain.every_route);
  ASSERT_EQ(plain.routes.size(), 2u);
  EXPECT_LT(plain.routes[0], plain.routes[1]);
  EXPECT_THAT(plain.routes, UnorderedElementsAre(ids_.route("chat"), ids_.route("embed")));
  const Key& hashed = catalog_->keys[1];
  EXPECT_EQ(hashed.sha256[0], 0x2c);
  EXPECT_EQ(hashed.sha256[31], 0xaf);
  EXPECT_TRUE(hashed.every_route);
}

TEST_F(CatalogTest, BodyMemoryIsAQuarterOfTheMachineUnlessGiven) {
  ASSERT_TRUE(catalog_->options.limits.bodies);
  EXPECT_EQ(catalog_->options.limits.bodies->count, memory_limit_bytes() / 4);
  Options given = catalog_->options;
  given.limits.bodies = Bytes{12345};
  EXPECT_EQ(make_catalog(given, ids_, 4)->options.limits.bodies, Bytes{12345});
}

TEST(Digest, IsSha256) {
  EXPECT_EQ(digest_of("foo"), digest_from_hex("2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"));
  EXPECT_EQ(digest_of(""), digest_from_hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
  EXPECT_THROW(digest_from_hex("00"), std::invalid_argument);
  EXPECT_THROW(digest_from_hex(std::string(64, 'g')), std::invalid_argument);
}

std::string pool_of(const std::string& backends) { return "{\"small\": {\"backends\": [" + backends + "]}}"; }

TEST(IdBook, AReloadFindsTheSameIdsAgain) {
  IdBook ids;
  const auto load_with = [&](const std::string& backends, std::uint64_t version) {
    return make_catalog(options_of(text_of({.pools = pool_of(backends)})), ids, version);
  };
  const std::string a = R"({"name": "a", "url": "http://h:1"})", b = R"({"name": "b", "url": "http://h:2"})",
                    c = R"({"name": "c", "url": "http://h:3"})";
  const auto first = load_with(a + "," + b, 1);
  const auto id_of = [](const Catalog& catalog, const std::string& name) {
    for (const auto& target : catalog.targets) {
      if (target && target->name == "small/" + name) return target->id;
    }
    return policies::BackendId{999};
  };
  const auto removed = load_with(a + "," + c, 2);
  EXPECT_EQ(id_of(*removed, "a"), id_of(*first, "a"));
  EXPECT_NE(id_of(*removed, "c"), id_of(*first, "b"));
  ASSERT_EQ(removed->targets.size(), 3u);
  EXPECT_EQ(removed->targets[index(id_of(*first, "b"))], nullptr);
  EXPECT_EQ(removed->plan.pools[0].backends.size(), 2u);

  const auto again = load_with(c + "," + b + "," + a, 3);
  for (const char* name : {"a", "b"}) EXPECT_EQ(id_of(*again, name), id_of(*first, name)) << name;
  EXPECT_EQ(again->plan.pools[0].id, first->plan.pools[0].id);
  EXPECT_EQ(again->plan.routes[0].id, first->plan.routes[0].id);

  // the last version holds fewer backends than there are ids; every id given out can still be looked up
  const auto fewer = load_with(a, 4);
  EXPECT_EQ(fewer->targets.size(), 3u);
}

TEST(IdBook, ABackendThatMovesIsAnotherBackend) {
  IdBook ids;
  const auto at = [&](const char* url) {
    const auto catalog =
        make_catalog(options_of(with_backends("[{\"name\": \"a\", \"url\": \"" + std::string(url) + "\"}]")), ids, 1);
    return catalog->plan.pools[0].backends[0];
  };
  const auto first = at("http://h:1"), moved = at("http://h:2"), back = at("http://H:1/");
  EXPECT_NE(first.id, moved.id);
  EXPECT_NE(first.endpoint, moved.endpoint);
  EXPECT_EQ(first.id, back.id);
  EXPECT_EQ(first.endpoint, back.endpoint);
}

TEST(IdBook, RefusesMoreThan65536OfAKind) {
  IdBook ids;
  for (int i = 0; i < 65536; ++i) ids.endpoint("h:" + std::to_string(i));
  EXPECT_EQ(index(ids.endpoint("h:65535")), 65535u);
  EXPECT_THROW(ids.endpoint("one more"), std::length_error);
  EXPECT_EQ(index(ids.endpoint("h:7")), 7u);
}

TEST(Defaults, AreThoseOfTheContract) {
  const Options options = options_of(text_of({}));
  const PoolOptions& pool = options.pools.at("small");
  const RouteOptions& route = options.routes.at("chat");
  EXPECT_EQ(options.limits.head, Bytes{32 << 10});
  EXPECT_EQ(options.limits.head_time, 10s);
  EXPECT_EQ(options.limits.body, Bytes{32 << 20});
  EXPECT_EQ(options.limits.body_idle, 5s);
  EXPECT_EQ(options.limits.body_rate_min, Bytes{1 << 10});
  EXPECT_EQ(options.limits.backend_head, Bytes{64 << 10});
  EXPECT_EQ(options.limits.keep_alive, 75s);
  EXPECT_EQ(options.upstream.idle, 30s);
  EXPECT_EQ(options.drain, 30s);
  EXPECT_EQ(route.timeouts.connect, 2s);
  EXPECT_EQ(route.timeouts.first_byte, 60s);
  EXPECT_EQ(route.timeouts.first_token, 60s);
  EXPECT_EQ(route.timeouts.idle, 30s);
  EXPECT_EQ(route.timeouts.total_unary, 300s);
  EXPECT_EQ(route.timeouts.total_stream, 1h);
  EXPECT_EQ(route.retry.attempts_max, 3u);
  EXPECT_EQ(route.head_hold, 75ms);
  EXPECT_EQ(pool.backends[0].slots, 16u);
  EXPECT_EQ(pool.queue.requests_max, 1000u);
  EXPECT_EQ(pool.queue.bytes_max, 256u << 20);
  EXPECT_EQ(pool.queue.wait_max, 30s);
  EXPECT_EQ(pool.probe.interval, 5s);
  EXPECT_EQ(pool.probe.timeout, 2s);
  EXPECT_EQ(pool.probe.fall, 3u);
  EXPECT_EQ(pool.probe.rise, 2u);
  EXPECT_EQ(pool.health.consecutive_failures, 5u);
  EXPECT_EQ(pool.health.eject, 5s);
  EXPECT_EQ(pool.health.eject_max, 120s);
  EXPECT_EQ(pool.health.cooldown_max, 60s);
  EXPECT_EQ(pool.health.cooldown_last_backend, policies::LastCooling::refuse);
}

}  // namespace
}  // namespace headgate::config
