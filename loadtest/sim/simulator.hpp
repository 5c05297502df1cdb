// The Dispatcher's second host: arrivals, mock engines and the network as events in virtual time. The Dispatcher, its
// plan and the engines are the serving ones. Same settings, same plan: same result.
//
//   const RunResult result = simulate(settings, plan_requests(options).requests);
//
// Between caller and gateway no time passes; between gateway and backend `network`, each way. Times of the result count
// from the first arrival.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/engine/profile.hpp"
#include "config/catalog.hpp"
#include "loadtest/runner.hpp"
#include "loadtest/sim/callers.hpp"
#include "loadtest/sim/faults.hpp"
#include "policies/dispatcher.hpp"

namespace headgate::loadtest {

inline constexpr Time sim_start{std::chrono::hours(1)};  // the first arrival; zero means "not set" in places

// Done to the gateway while it serves.
struct SimChange {
  Nanos at{};                                       // since the first arrival
  std::shared_ptr<const config::Catalog> reload{};  // of the same IdBook; null: the endpoint is set by hand
  policies::EndpointId endpoint{};
  policies::HandSetting by_hand{};
};

struct SimSettings {
  std::shared_ptr<const config::Catalog> catalog;
  std::vector<SimChange> changes;         // by time
  std::vector<TrafficClass> classes;      // of the plan; their models are routes of the catalog
  std::vector<engine::Profile> profiles;  // by endpoint id, of all catalogs
  std::vector<SimFault> faults;           // by time
  Callers callers;
  Nanos network = std::chrono::microseconds(250);
  // Called after each event with what was ordered, for tests; may be empty.
  std::function<void(Time now, policies::Dispatcher&, const policies::Orders&)> watch;
};

RunResult simulate(const SimSettings& settings, const std::vector<Planned>& plan);

}  // namespace headgate::loadtest
