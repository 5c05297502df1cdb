// What requests of a plan have in common: who sends them, what they ask for and what they are judged by.
#pragma once

#include <cstddef>
#include <string>

#include "loadtest/slo.hpp"

namespace headgate::loadtest {

inline constexpr std::size_t traffic_classes_max = 64;

struct TrafficClass {
  std::string name;   // empty: the only one, of a plan without a workload
  std::string model;  // a route of the gateway
  Slo slo{};
};

}  // namespace headgate::loadtest
