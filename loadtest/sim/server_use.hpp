// How the model servers of a simulation were used, from the counts of their engines.
#pragma once

#include <vector>

#include "backends/engine/engine.hpp"
#include "config/catalog.hpp"
#include "loadtest/runner.hpp"

namespace headgate::loadtest {

// One for each endpoint of the catalog, under the name and at the price of the first backend there. Profiles and counts
// by endpoint id.
std::vector<ServerUse> server_use(const config::Catalog& catalog, const std::vector<engine::Profile>& profiles,
                                  const std::vector<engine::EngineCounts>& counts, Nanos run);

}  // namespace headgate::loadtest
