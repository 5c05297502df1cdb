// The admin listener: GET /metrics, /admin/state, /healthz, /readyz; POST /admin/reload, /admin/drain,
// /admin/backends/{pool}/{backend}. One connection
// is one coroutine on the given io_context, which should be a side thread: hooks run there and may take milliseconds.
//
//   AdminServer admin(io, {.listen = "127.0.0.1:9090"}, hooks);   // binds; throws std::system_error
//   admin.start();  ...  admin.stop();                            // stop: any thread; io.run() returns when all is
//   closed
//
// With a token every path but /healthz and /readyz needs "Authorization: Bearer TOKEN" (401). Without one, a mutation
// needs "x-headgate-admin: 1" (403), which a web page cannot send across origins. Host must be localhost, a loopback
// address or the address listened on, and Origin, where sent, the same as Host; else 403. On a listener that is not
// loopback, a request with the token may use any Host name.
// Limits: head 8 KiB, body 64 KiB, 10 s for a request to come or its answer to go, 64 connections (more are closed at
// once).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"

namespace headgate::gateway {

struct ReloadReport {
  bool ok = false;
  std::uint64_t version = 0;          // the one in use afterwards
  std::vector<std::string> problems;  // why it was refused
  std::vector<std::string> warnings;  // what of it is ignored
};

struct BackendReport {
  std::uint16_t status = 200;
  std::string problem;  // of a 400 or 404
  bool drained = false;
  std::uint32_t weight = 0;  // set by hand; 0: what the configuration says
};

struct AdminHooks {
  std::function<std::string()> metrics;
  std::function<std::string()> state;
  std::function<ReloadReport()> reload;
  std::function<void()> drain;
  std::function<BackendReport(std::string_view name, std::string_view body)> backend;
  std::function<bool()> ready;
};

struct AdminSettings {
  std::string listen = "127.0.0.1:9090";  // address:port or [v6]:port; port 0: any free one
  config::Secret token;
  std::uint32_t connections_max = 64;
  Nanos idle = std::chrono::seconds(10);
};

class AdminServer {
 public:
  AdminServer(boost::asio::io_context& io, AdminSettings settings, AdminHooks hooks);
  ~AdminServer();  // after stop() and the end of io.run(), or before it began
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  void start();
  void stop();
  void set_token(config::Secret token);  // after a reload; any thread
  std::uint16_t port() const;

 private:
  struct Server;
  std::shared_ptr<Server> server_;  // shared with its coroutines, so that none outlives what it uses
};

}  // namespace headgate::gateway
