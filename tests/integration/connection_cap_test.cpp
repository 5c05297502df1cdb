// connections_max: how many connections all workers together have open to a backend.
#include <gtest/gtest.h>

#include <thread>

#include "support/answers.hpp"
#include "support/child_process.hpp"
#include "support/gateway_process.hpp"
#include "support/steady_callers.hpp"
#include "support/tls_tunnel.hpp"

namespace headgate::support {
namespace {

// Probes have connections of their own: none in these tests.
nlohmann::json capped(const std::vector<const ScriptedUpstream*>& upstreams, int connections_max) {
  auto config = basic_config(upstreams);
  config["workers"] = 2;
  config["pools"]["p"]["probe"]["interval"] = "1h";
  for (auto& backend : config["pools"]["p"]["backends"]) backend["connections_max"] = connections_max;
  return config;
}

double figure(const GatewayProcess& gateway, const std::string& name) {
  return gateway.metric("headgate_" + name, {{"backend", "p/u1"}});
}

// Eight callers on both workers share two connections; each answer takes a moment, so that they stand in line.
TEST(ConnectionCap, IsNeverPassedWhileBothWorkersAreAskedForMore) {
  ScriptedUpstream upstream(good_answer({.delay = 2ms}));
  const GatewayProcess gateway(capped({&upstream}, 2));
  SteadyCallers callers(gateway.port(), 8, 1ms);
  EXPECT_TRUE(eventually(30s, [&] { return callers.answered() >= 400; }));
  callers.stop();
  for (const std::string& fault : callers.faults()) ADD_FAILURE() << fault;
  EXPECT_EQ(upstream.connected_max(), 2u);
  EXPECT_EQ(figure(gateway, "backend_connections"), 2);
  EXPECT_EQ(figure(gateway, "backend_connections_max"), 2);
  EXPECT_EQ(figure(gateway, "backend_in_flight_limit"), 2) << "what cannot have a connection waits in the queue";
}

// One connection, idle at the worker that had the last request. Callers come until one has met the other worker.
TEST(ConnectionCap, AnIdleConnectionOfOneWorkerServesTheOther) {
  ScriptedUpstream upstream(good_answer({.delay = 0ms}));
  const GatewayProcess gateway(capped({&upstream}, 1));
  for (int n = 0; n < 400 && figure(gateway, "connections_lent_total") < 3; ++n) {
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(n % 2 == 0)), scaled(5s));
    ASSERT_EQ(reply.status, 200) << reply.raw;
    ASSERT_TRUE(reply.complete);
  }
  EXPECT_GE(figure(gateway, "connections_lent_total"), 3);
  EXPECT_GE(figure(gateway, "connection_waits_total"), 3);
  EXPECT_EQ(upstream.connection_count(), 1u) << "lent, not dialled anew";
}

// A TLS connection does not move: it is closed, and the other worker dials.
TEST(ConnectionCap, AnIdleTlsConnectionMakesRoomForTheOtherWorkers) {
  const Identity authority = make_identity({.name = "test authority"});
  const Identity server = make_identity({.signed_by = &authority});
  const TextFile trusted(authority.certificate);
  ScriptedUpstream upstream(good_answer({.delay = 0ms}));
  const TlsTunnel tunnel(TlsTunnel::terminate, upstream.port(), {.identity = server});
  auto config = capped({&upstream}, 1);
  config["pools"]["p"]["backends"][0]["url"] = "https://127.0.0.1:" + std::to_string(tunnel.port());
  config["pools"]["p"]["tls"] = {{"ca", trusted.path()}, {"server_name", "localhost"}};
  const GatewayProcess gateway(config);
  for (int n = 0; n < 400 && figure(gateway, "connection_waits_total") < 2; ++n) {
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)), scaled(5s));
    ASSERT_EQ(reply.status, 200) << reply.raw;
  }
  EXPECT_GE(upstream.connection_count(), 3u);
  EXPECT_EQ(figure(gateway, "connections_lent_total"), 0);
  EXPECT_EQ(figure(gateway, "backend_connections"), 1);
}

// At the cap a request goes to another backend, then waits in the pool's queue, and is refused where that is full.
TEST(ConnectionCap, WhatFindsNoConnectionGoesElsewhereThenWaitsThenIsRefused) {
  Event release;
  const Script held = [&, good = good_answer()](Exchange& x) {
    if (x.wait_for(release)) good(x);
  };
  ScriptedUpstream one(held), two(held);
  auto config = capped({&one, &two}, 1);
  config["pools"]["p"]["queue"]["requests_max"] = 1;
  GatewayProcess gateway(config);
  std::vector<RawClient> callers;
  for (int n = 0; n < 3; ++n) callers.emplace_back(gateway.port()).send(chat_request(chat_body(false)));
  ASSERT_TRUE(one.await_arrivals(1) && two.await_arrivals(1));
  ASSERT_TRUE(eventually(10s, [&] { return gateway.metric("headgate_queued", {{"pool", "p"}}) == 1; }));
  EXPECT_EQ(error_code_of(ask_once(gateway.port(), chat_request(chat_body(false)))), "queue_full");
  release.set();
  for (RawClient& caller : callers) EXPECT_EQ(caller.read_reply().status, 200);
  EXPECT_EQ(one.connected_max(), 1u);
  EXPECT_EQ(two.connected_max(), 1u);
}

// An answer that its caller does not read yet is no reason to keep its backend's only connection.
TEST(ConnectionCap, ACallerWhoReadsSlowlyHoldsNoConnection) {
  const std::string large = "{\"text\":\"" + std::string(250'000, 'x') + "\"}";
  ScriptedUpstream upstream([&, good = good_answer({.delay = 0ms})](Exchange& x) {
    if (x.arrival().body.find("large") == std::string::npos) return good(x);
    x.write_last(plain_reply(200, large));
  });
  const GatewayProcess gateway(capped({&upstream}, 1));
  std::vector<Socket> slow;  // more answers than the kernel takes for callers with small windows
  for (int n = 0; n < 4; ++n) {
    slow.push_back(connect_to_loopback(gateway.port(), 5s, 4096));
    ASSERT_TRUE(send_all(slow.back(), chat_request(chat_body(false, "m", R"(,"user":"large")")), after(now(), 5s)));
    ASSERT_TRUE(upstream.await_arrivals(static_cast<std::size_t>(n) + 1));
  }
  for (int n = 0; n < 8; ++n) EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false))).status, 200);
  EXPECT_EQ(upstream.connected_max(), 1u);
}

// Four idle connections; a reload allows one: the others are closed at once, and the next request uses what is left.
TEST(ConnectionCap, AReloadThatLowersItClosesIdleConnections) {
  Event release;
  ScriptedUpstream upstream([&, good = good_answer()](Exchange& x) {
    if (x.wait_for(release)) good(x);
  });
  auto config = capped({&upstream}, 4);
  GatewayProcess gateway(config);
  std::vector<RawClient> callers;
  for (int n = 0; n < 4; ++n) callers.emplace_back(gateway.port()).send(chat_request(chat_body(false)));
  ASSERT_TRUE(upstream.await_arrivals(4));
  release.set();
  for (RawClient& caller : callers) EXPECT_EQ(caller.read_reply().status, 200);
  EXPECT_EQ(figure(gateway, "backend_connections"), 4);
  config["pools"]["p"]["backends"][0]["connections_max"] = 1;
  gateway.rewrite_config(config);
  ASSERT_EQ(gateway.admin_post("/admin/reload").status, 200);
  EXPECT_TRUE(eventually(10s, [&] { return figure(gateway, "backend_connections") == 1; }));
  for (RawClient& caller : callers) EXPECT_EQ(caller.ask(chat_request(chat_body(false))).status, 200);
  EXPECT_EQ(upstream.connection_count(), 4u);
}

}  // namespace
}  // namespace headgate::support
