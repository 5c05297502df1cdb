// A whole gateway drawn from a seed: configuration, model servers, faults, what an operator does meanwhile, callers and
// what they send.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "config/catalog.hpp"
#include "loadtest/sim/simulator.hpp"

namespace headgate::loadtest {

class Dice;

struct World {
  explicit World(std::uint64_t seed);

  config::IdBook ids;
  SimSettings settings;
  std::vector<Planned> plan;
  std::uint32_t endpoints = 0;  // ids given out, those of all catalogs

 private:
  std::shared_ptr<const config::Catalog> catalog_of(const nlohmann::json& config);
  void draw_changes(Dice& dice, const nlohmann::json& config, Nanos span);

  std::uint64_t catalogs_ = 0;
};

}  // namespace headgate::loadtest
