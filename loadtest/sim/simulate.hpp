// headgate simulate: plays a plan against the model servers of a configuration in virtual time and reports as `headgate
// load` does; with several seeds or a second configuration, as comparison.hpp does.
#pragma once

#include <string>
#include <vector>

#include "loadtest/options.hpp"

namespace headgate::loadtest {

struct SimulateOptions {
  std::string config;
  LoadOptions load;                              // arrivals, model, slo, where results go
  std::vector<std::string> profiles = {"demo"};  // NAME for all, POOL=NAME for the servers of a pool
  std::uint32_t retries = 0;                     // of callers, as the official SDKs do; those have 2
  std::string patience;                          // callers leave when no content has come by then; empty: they stay
  std::vector<std::string> faults;               // sim/faults.hpp; in every configuration alike
  std::vector<std::string> sets;                 // "pools.small.queue.requests_max=5", in `config` only
  std::uint32_t seeds = 1;                       // so many runs, from load.seed on; with several: means and intervals
  std::string compare;                           // another configuration, played with the same arrivals; empty: none
  std::string replay;                            // an event log, played instead of all else; empty: none
};

// The exit code: 0 done, 1 a condition failed or a file could not be written, 2 usage or configuration.
int simulate(const SimulateOptions& options);

}  // namespace headgate::loadtest
