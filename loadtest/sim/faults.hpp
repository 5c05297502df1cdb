// What goes wrong with the model servers of a simulation, and when: as text, and as the changes it comes to.
//
//   at=WHEN;backend=POOL/NAME;do=WHAT[;for=DURATION]      WHEN: "60s", or a share of the arrivals' span: "1/3"
//   at=60s;backend=small/b1;do=kill;for=20s               POOL/* stands for all servers of the pool
//
//   kill     the process is gone: connections refused, streams broken; it comes back with an empty cache
//   stall    it accepts and says nothing; what it was doing goes on afterwards
//   slow     every step takes factor= times as long (5)
//   storm    every request, or share= of them, is answered status= (429) with retry-after= (1s)
//   flap     killed and back, in turn, each for every= (2s)
//   recover  back to normal
// for= is the time after which it recovers by itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/catalog.hpp"
#include "policies/base/random.hpp"
#include "policies/base/time.hpp"
#include "policies/calls.hpp"

namespace headgate::loadtest {

// How a server is from some time on.
struct ServerState {
  bool down = false, stalled = false;
  bool no_socket = false;  // the gateway has no descriptor left for a connection to it
  double slowness = 1;
  std::uint16_t status = 0;  // 0: it works; else its answer
  Nanos retry_after{0};      // with that status
  double share = 1;          // of the requests that have that answer

  // How an attempt ends there without reaching the engine, if it does. `request`, `attempt`: its numbers.
  std::optional<policies::Outcome> at_once(std::uint64_t request, std::uint64_t attempt) const {
    using policies::End;
    if (down) return policies::Outcome{.end = End::connect};
    if (no_socket) return policies::Outcome{.end = End::no_socket};
    if (status == 0 || unit(draw(0, request, attempt)) >= share) return std::nullopt;
    return policies::Outcome{.end = End::status, .status = status, .retry_after = retry_after};
  }
};

struct SimFault {
  Nanos at{};  // since the start of the arrivals' span
  policies::EndpointId endpoint{};
  ServerState state;
};

// By time. On error nothing, and `problem` says what is wrong.
std::vector<SimFault> parse_faults(const std::vector<std::string>& texts, const config::Catalog& catalog, Nanos span,
                                   std::string& problem);

}  // namespace headgate::loadtest
