// How long a lock was held, sampled: one section in 16, so that a second look at the clock costs nothing on average.
// Written under the lock it measures, read at any moment.
#pragma once

#include <algorithm>
#include <array>

#include "gateway/count.hpp"
#include "policies/base/time.hpp"

namespace headgate::gateway {

struct HoldTimes {
  static constexpr std::array<std::int64_t, 8> bounds_ns{250, 500, 1'000, 2'000, 3'000, 5'000, 10'000, 100'000};
  static constexpr std::uint32_t one_in = 16;

  void observe(Nanos held) {
    const auto at = std::lower_bound(bounds_ns.begin(), bounds_ns.end(), held.count()) - bounds_ns.begin();
    buckets[static_cast<std::size_t>(at)].add();
    sum_ns.add(static_cast<std::uint64_t>(held.count()));
  }

  std::array<Count, bounds_ns.size() + 1> buckets;  // not cumulative; the last one is above every bound
  Count sum_ns;
};

}  // namespace headgate::gateway
