// The real binary, `headgate serve`, started for one test on free loopback ports and stopped with it. The configuration
// is JSON (see gateway_config.hpp); listen addresses and the access log's file are filled in where absent. The
// constructor returns once /readyz answers 200, and throws std::runtime_error with the process's output if it does not.
// When the test has failed, the destructor prints the configuration and the output; a process that ended by itself, or
// with an exit code that means a fault, fails the test.
//
//   GatewayProcess gateway(basic_config({&u1}));
//   const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
//   EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 0);
//   EXPECT_EQ(gateway.access_lines(1).front()["outcome"], "ok");
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/gateway_config.hpp"
#include "support/prometheus.hpp"
#include "support/raw_client.hpp"

namespace headgate::support {

struct Started {
  Nanos ready_within = 20s;
  bool wait_ready = true;                  // false: only until /healthz answers
  std::vector<std::string> environment{};  // "NAME=value", added to this process's own
  std::uint64_t descriptors_max = 0;       // RLIMIT_NOFILE of the gateway; 0: as here
  std::vector<std::string> options{};      // of headgate serve, such as --watch
};

class GatewayProcess {
 public:
  explicit GatewayProcess(nlohmann::json config, const Started& how = {});
  ~GatewayProcess();
  GatewayProcess(const GatewayProcess&) = delete;
  GatewayProcess& operator=(const GatewayProcess&) = delete;

  std::uint16_t port() const { return port_; }  // data
  std::uint16_t admin_port() const { return admin_port_; }
  pid_t pid() const { return pid_; }

  Reply admin_get(std::string_view target) const;
  Reply admin_post(std::string_view target, std::string_view body = {}) const;  // with x-headgate-admin: 1
  nlohmann::json state() const;                                                 // GET /admin/state
  std::string metrics_text() const;
  // Sum of the samples of that name whose labels include `labels`, 0 if none does. A name that the exposition does not
  // know at all fails the test: a misspelt name must not read as 0.
  double metric(std::string_view name, const Labels& labels = {}) const;

  // The access log's lines once there are `count` (fails the test if they do not come in time).
  std::vector<nlohmann::json> access_lines(std::size_t count, Nanos within = 5s) const;
  std::string access_text() const;
  double resident_mib() const;  // memory of the process
  std::string output() const;   // stdout and stderr so far

  // Puts other text, or other JSON with the same listeners and log, in the place of the configuration file.
  void rewrite_config(std::string_view text) const;
  void rewrite_config(nlohmann::json config) const;
  std::string config_path() const { return folder_ + "/config.json"; }
  nlohmann::json config() const { return config_; }  // as started

  void signal(int number) const;
  // The exit code (128 + signal number if killed by one), or nothing if it still runs after `within`.
  std::optional<int> exit_code(Nanos within);

 private:
  bool start(const Started& how);
  nlohmann::json with_addresses(nlohmann::json config) const;
  void stop();

  nlohmann::json config_;
  std::string folder_;
  std::uint16_t port_ = 0, admin_port_ = 0;
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

}  // namespace headgate::support
