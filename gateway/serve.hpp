// `headgate serve`: builds everything from a configuration file, wires it, runs it until SIGTERM or SIGINT has drained
// it. SIGHUP reloads. Exit codes: 0 drained, 1 failed (a port is taken), 2 the configuration has problems, 3 drained
// with requests cut. A second signal ends it at once.
#pragma once

#include <cstdint>
#include <string>

namespace headgate::gateway {

struct ServeOptions {
  std::string config;
  std::string version;
  bool watch = false;                      // reload when the file changes
  std::string event_log;                   // a file; empty: none
  std::uint64_t event_log_max = 1u << 30;  // bytes
};

int serve(const ServeOptions& options);

}  // namespace headgate::gateway
