// The configuration that the cases start from: pool "p" of the given upstreams (u1, u2, ..), route "m" to it, no
// retries, every time limit 60 s, key "k" = GW1, the pool's own key K1. A test changes what its stage names:
//
//   auto config = basic_config({&u1, &u2});
//   config["routes"]["m"]["retry"]["attempts_max"] = 2;
//
// Balance is round_robin, so that the first request goes to u1. Where every request must try u1 first: chain_config.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headgate::support {

class ScriptedUpstream;

nlohmann::json backend_config(const std::string& name, std::uint16_t port, int slots = 16);
nlohmann::json basic_config(const std::vector<const ScriptedUpstream*>& upstreams);
// One pool of one backend per upstream (p1/u1, p2/u2, ..), tried in the order given.
nlohmann::json chain_config(const std::vector<const ScriptedUpstream*>& upstreams);

}  // namespace headgate::support
