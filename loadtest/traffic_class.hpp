// What requests of a plan have in common: who sends them, what they ask for and what they are judged by.
#pragma once

#include <cstddef>
#include <string>

#include "loadtest/slo.hpp"
#include "policies/calls.hpp"

namespace headgate::loadtest {

inline constexpr std::size_t traffic_classes_max = 64;

struct TrafficClass {
  std::string name;   // empty: the only one, of a plan without a workload
  std::string model;  // a route of the gateway
  policies::Class klass = policies::Class::interactive;
  std::string tenant{};  // simulated traffic only; empty: nobody's
  policies::TenantId tenant_id{};
  double max_cost_usd = policies::unlimited_usd, min_quality = 0;
  Slo slo{};
};

}  // namespace headgate::loadtest
