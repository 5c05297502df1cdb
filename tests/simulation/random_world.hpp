// A whole gateway drawn from a seed: configuration, model servers, faults, callers and what they send.
#pragma once

#include <vector>

#include "config/catalog.hpp"
#include "loadtest/sim/simulator.hpp"

namespace headgate::loadtest {

struct World {
  explicit World(std::uint64_t seed);

  config::IdBook ids;
  SimSettings settings;
  std::vector<Planned> plan;
  std::uint32_t attempts_max = 1;  // of the route
};

}  // namespace headgate::loadtest
