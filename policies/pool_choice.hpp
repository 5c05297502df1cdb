// In which order a request looks at the pools of its route. Those that are not good enough, or could cost more than it
// may, are left out. Then:
//   priority               as written
//   cheapest_within_budget least expected cost first
//   fastest                soonest predicted first
//   weighted               one drawn by weight, the others as written
// Except under `fastest`, pools that are not predicted to keep its latency budget come after those that are. Equal ones
// stay as written. A pool is left for the next when it has no unit free and the request's patience ends: at once under
// `weighted`; under `fastest` when it has waited as long as the next one is slower; under `cheapest_within_budget` when
// the wait endangers the budget; a TTFT budget decides for all of them (dispatch_start.cpp: spills()).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "policies/base/time.hpp"
#include "policies/calls.hpp"
#include "policies/plan.hpp"

namespace headgate::policies {

// What is known of a pool as the request comes.
struct PoolCandidate {
  std::uint32_t pool = 0;
  std::uint32_t weight = 1;
  double quality = 0;                     // 0..1
  double expected_usd = 0, most_usd = 0;  // what the request costs there
  bool in_budget = true;                  // predicted to keep its latency budget, as far as that is known
  Nanos predicted{0};                     // until its caller has what he waits for; 0: unknown, so it is found out
};

// What a request asks of its pools.
struct PoolWish {
  double quality_min = 0, usd_max = unlimited_usd;
  template <class A>
  void image(A& a) {
    a(quality_min, usd_max);
  }
};

struct PoolRanking {
  std::array<std::uint32_t, pools_max> pools{};
  std::uint32_t n = 0;
  Nanos second_later{0};  // predicted of the second, less that of the first
};

// At most pools_max candidates. None is left: no pool is good and cheap enough.
PoolRanking rank_pools(PoolOrder order, std::span<const PoolCandidate> candidates, const PoolWish& wish,
                       std::uint64_t bits);

}  // namespace headgate::policies
