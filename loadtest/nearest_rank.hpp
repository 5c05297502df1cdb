// Exact quantile of a few values; Histogram (recorder.hpp) is for many.
#pragma once

#include <cmath>
#include <vector>

#include "policies/base/time.hpp"

namespace headgate::loadtest {

// In milliseconds, the value at rank ceil(share * count); share in 0..1, values sorted and at least one.
inline double nearest_rank_ms(const std::vector<Nanos>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return static_cast<double>(sorted[rank == 0 ? 0 : rank - 1].count()) / 1e6;
}

}  // namespace headgate::loadtest
