#include "gateway/admin.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "support/raw_client.hpp"

namespace headgate::gateway {
namespace {

using namespace std::chrono_literals;
using support::RawClient;
using support::Reply;

class Admin : public testing::Test {
 protected:
  ~Admin() override { end(); }

  void begin(AdminSettings settings = {}) {
    AdminHooks hooks;
    hooks.metrics = [] { return std::string("headgate_up 1\n"); };
    hooks.state = [] { return std::string("{\"version\":7}"); };
    hooks.reload = [this] {
      return ++reloads == 1 ? ReloadReport{true, 8, {}, {"w"}} : ReloadReport{false, 8, {"line 3: \"x\""}, {}};
    };
    hooks.drain = [this] { draining = true; };
    hooks.backend = [](std::string_view name, std::string_view body) {
      return name == "p/u1" ? BackendReport{200, {}, body == "drain", 3} : BackendReport{404, "no such", false, 0};
    };
    hooks.ready = [this] { return !draining; };
    settings.listen = "127.0.0.1:0";
    server_.emplace(io_, settings, hooks);
    server_->start();
    thread_ = std::thread([this] { io_.run(); });
  }
  void end() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();  // ends only when every connection has
  }

  std::string text(std::string_view method, std::string_view path, std::string_view headers = {}) {
    return std::string(method) + " " + std::string(path) +
           " HTTP/1.1\r\nHost: localhost:" + std::to_string(server_->port()) + "\r\n" + std::string(headers) + "\r\n";
  }
  Reply ask(std::string_view method, std::string_view path, std::string_view headers = {}) {
    return support::ask_once(server_->port(), text(method, path, headers));
  }

  std::atomic<int> reloads{0};
  std::atomic<bool> draining{false};
  boost::asio::io_context io_{1};
  std::optional<AdminServer> server_;
  std::thread thread_;
};

TEST_F(Admin, ServesItsPages) {
  begin();
  const Reply metrics = ask("GET", "/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_EQ(metrics.head.get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(metrics.body, "headgate_up 1\n");
  const Reply state = ask("GET", "/admin/state?pretty");
  EXPECT_EQ(state.status, 200);
  EXPECT_EQ(state.head.get("Content-Type"), "application/json");
  EXPECT_EQ(state.body, "{\"version\":7}");
}

TEST_F(Admin, SetsABackendByNameAndSaysHowItStands) {
  begin();
  const Reply set = ask("POST", "/admin/backends/p/u1", "x-headgate-admin: 1\r\nContent-Length: 5\r\n\r\ndrain");
  EXPECT_EQ(set.status, 200);
  EXPECT_EQ(set.body, "{\"name\":\"p/u1\",\"drained\":true,\"weight\":3}");
  EXPECT_EQ(ask("POST", "/admin/backends/p/u2", "x-headgate-admin: 1\r\nContent-Length: 0\r\n").status, 404);
  EXPECT_EQ(ask("POST", "/admin/backends/p/u1", "Content-Length: 0\r\n").status, 403);
}

TEST_F(Admin, ReloadsAndSaysWhatCameOfIt) {
  begin();
  const Reply first = ask("POST", "/admin/reload", "x-headgate-admin: 1\r\n");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "{\"ok\":true,\"version\":8,\"problems\":[],\"warnings\":[\"w\"]}");
  const Reply second = ask("POST", "/admin/reload", "x-headgate-admin: 1\r\nContent-Length: 0\r\n");
  EXPECT_EQ(second.status, 400);
  EXPECT_EQ(second.body, "{\"ok\":false,\"version\":8,\"problems\":[\"line 3: \\\"x\\\"\"],\"warnings\":[]}");
}

TEST_F(Admin, IsNotReadyWhileItDrainsButAlive) {
  begin();
  EXPECT_EQ(ask("GET", "/readyz").status, 200);
  EXPECT_EQ(ask("POST", "/admin/drain", "x-headgate-admin: 1\r\n").status, 202);
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(Admin, RefusesByTheRules) {
  begin();
  EXPECT_EQ(ask("POST", "/admin/drain").status, 403);
  EXPECT_FALSE(draining);
  const Reply wrong = ask("DELETE", "/metrics");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.head.get("Allow"), "GET");
  EXPECT_EQ(support::plain_error_fault(wrong), "");
  const Reply unknown = ask("GET", "/v1/models");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(support::plain_error_fault(unknown), "");
  EXPECT_EQ(ask("GET", "/metrics", "Origin: http://evil.example\r\n").status, 403);
  const std::string port = std::to_string(server_->port());
  EXPECT_EQ(
      support::ask_once(server_->port(), "GET /metrics HTTP/1.1\r\nHost: evil.example:" + port + "\r\n\r\n").status,
      403);
  EXPECT_EQ(ask("GET", "/metrics", "Host: localhost:" + port + "\r\n").status, 403) << "two Hosts";
}

TEST_F(Admin, AsksForTheTokenAndTakesANewOne) {
  AdminSettings settings;
  settings.token = config::Secret("first");
  begin(settings);
  const Reply without = ask("GET", "/metrics");
  EXPECT_EQ(without.status, 401);
  EXPECT_EQ(without.head.get("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(ask("GET", "/metrics", "Authorization: Bearer first\r\n").status, 200);
  server_->set_token(config::Secret("second"));
  EXPECT_TRUE(
      support::eventually(5s, [&] { return ask("GET", "/metrics", "Authorization: Bearer first\r\n").status == 401; }));
  EXPECT_EQ(ask("GET", "/metrics", "Authorization: Bearer second\r\n").status, 200);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(Admin, KeepsAConnectionForTheNextRequest) {
  begin();
  RawClient client(server_->port());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.ask(text("GET", "/healthz")).status, 200);
  EXPECT_EQ(client.ask(text("GET", "/healthz", "Connection: close\r\n")).status, 200);
  EXPECT_TRUE(client.closed_by_peer(5s));
}

TEST_F(Admin, BoundsHeadAndBody) {
  begin();
  const std::string long_line(9000, 'a');
  EXPECT_EQ(ask("GET", "/metrics", "X: " + long_line + "\r\n").status, 431);
  EXPECT_EQ(ask("POST", "/admin/reload", "x-headgate-admin: 1\r\nContent-Length: 70000\r\n").status, 413);
  EXPECT_EQ(reloads, 0);
  RawClient client(server_->port());
  EXPECT_EQ(client.ask("nonsense\r\n\r\n").status, 400);
  EXPECT_TRUE(client.closed_by_peer(5s));
}

TEST_F(Admin, ClosesACallerThatSendsNothing) {
  AdminSettings settings;
  settings.idle = 100ms;
  begin(settings);
  RawClient silent(server_->port()), half(server_->port());
  half.send("GET /metr");
  EXPECT_TRUE(silent.closed_by_peer(5s));
  EXPECT_TRUE(half.closed_by_peer(5s));
}

TEST_F(Admin, ClosesConnectionsOverItsLimitAndServesAgainAfterwards) {
  AdminSettings settings;
  settings.connections_max = 2;
  begin(settings);
  RawClient one(server_->port());
  ASSERT_EQ(one.ask(text("GET", "/healthz")).status, 200);
  {
    RawClient two(server_->port());
    ASSERT_EQ(two.ask(text("GET", "/healthz")).status, 200);
    RawClient three(server_->port());
    EXPECT_TRUE(three.closed_by_peer(5s));
    EXPECT_EQ(one.ask(text("GET", "/healthz")).status, 200);
  }
  EXPECT_TRUE(support::eventually(5s, [&] { return ask("GET", "/healthz").status == 200; }));
}

TEST_F(Admin, EndsWithIdleConnectionsOpen) {
  begin();
  RawClient idle(server_->port());
  ASSERT_EQ(idle.ask(text("GET", "/healthz")).status, 200);
  const Time began = support::now();
  end();
  EXPECT_LT(support::now() - began, support::scaled(2s));
  EXPECT_TRUE(idle.closed_by_peer(1s));
}

TEST(AdminListener, FailsOnATakenPort) {
  boost::asio::io_context io;
  const support::Socket taken = support::listen_on_loopback();
  AdminSettings settings;
  settings.listen = "127.0.0.1:" + std::to_string(taken.port());
  EXPECT_THROW(AdminServer(io, settings, {}), std::system_error);
  settings.listen = "somewhere:1";
  EXPECT_THROW(AdminServer(io, settings, {}), std::invalid_argument);
}

}  // namespace
}  // namespace headgate::gateway
