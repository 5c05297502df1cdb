// Time as the policies see it: a number handed in, never read from a clock.
#pragma once

#include <chrono>

namespace headgate {

using Nanos = std::chrono::nanoseconds;
// A point on the host's monotonic scale: steady_clock in the gateway, virtual time in tests and simulations.
using Time = std::chrono::time_point<std::chrono::steady_clock, Nanos>;

inline constexpr Time never = Time::max();

// now + wait, without overflow: a wait too long to represent ends never.
constexpr Time after(Time now, Nanos wait) { return wait >= never - now ? never : now + wait; }

}  // namespace headgate
