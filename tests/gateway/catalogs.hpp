// Small catalogs for tests of the gateway's parts, made the way the gateway makes them.
#pragma once

#include <memory>
#include <string>

#include "config/catalog.hpp"

namespace headgate::gateway {

// Pools "fast" (backends a on 9001, b on 9002) and "slow" (c on 9002: the same endpoint as b), routes "small" (fast,
// slow) and "big" (slow), keys: "all" is sk-all, "one" is sk-one and may use "big" alone.
inline config::Options two_pools() {
  config::Options options;
  options.pools["fast"].backends = {{"a", "http://127.0.0.1:9001", 1, 4}, {"b", "http://127.0.0.1:9002", 1, 8}};
  options.pools["fast"].api_key = config::Secret("backend-secret");
  options.pools["slow"].backends = {{"c", "http://127.0.0.1:9002", 1, 8}};
  options.routes["small"].pools = {"fast", "slow"};
  options.routes["big"].pools = {"slow"};
  options.keys = {{"all", "", config::Secret("sk-all"), {}}, {"one", "", config::Secret("sk-one"), {"big"}}};
  return options;
}

}  // namespace headgate::gateway
