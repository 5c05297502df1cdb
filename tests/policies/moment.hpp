// Moments of virtual time.
#pragma once

#include "policies/base/time.hpp"

namespace headgate::policies {

using namespace std::chrono_literals;

constexpr Time at(Nanos since_start) { return Time{} + 1h + since_start; }

}  // namespace headgate::policies
