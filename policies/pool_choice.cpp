#include "policies/pool_choice.hpp"

#include <algorithm>

#include "policies/base/random.hpp"

namespace headgate::policies {
namespace {

// Its place is given to one of them, each in proportion to its weight.
void draw_first(std::span<const PoolCandidate*> of, std::uint64_t bits) {
  double all = 0;
  for (const PoolCandidate* one : of) all += one->weight;
  double at = unit(bits) * all;
  for (std::size_t i = 0; i < of.size(); ++i) {
    at -= of[i]->weight;
    if (at >= 0 && i + 1 < of.size()) continue;
    std::rotate(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(i),
                of.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return;
  }
}

}  // namespace

PoolRanking rank_pools(PoolOrder order, std::span<const PoolCandidate> candidates, const PoolWish& wish,
                       std::uint64_t bits) {
  std::array<const PoolCandidate*, pools_max> by_rank{};
  std::size_t n = 0;
  for (const PoolCandidate& one : candidates) {
    if (one.quality >= wish.quality_min && one.most_usd <= wish.usd_max) by_rank[n++] = &one;
  }
  const std::span all(by_rank.data(), n);
  // A few: insertion sort keeps equal ones as written, and needs no memory.
  const auto sort = [&](auto before) {
    for (std::size_t i = 1; i < n; ++i) {
      for (std::size_t j = i; j > 0 && before(*all[j], *all[j - 1]); --j) std::swap(all[j], all[j - 1]);
    }
  };
  switch (order) {
    case PoolOrder::priority:
      break;
    case PoolOrder::cheapest_within_budget:
      sort([](const auto& a, const auto& b) { return a.expected_usd < b.expected_usd; });
      break;
    case PoolOrder::fastest:
      sort([](const auto& a, const auto& b) { return a.predicted < b.predicted; });
      break;
    case PoolOrder::weighted:
      draw_first(all, bits);
      break;
  }
  if (order != PoolOrder::fastest) sort([](const auto& a, const auto& b) { return a.in_budget && !b.in_budget; });
  PoolRanking ranking;
  for (const PoolCandidate* one : all) ranking.pools[ranking.n++] = one->pool;
  if (n > 1) ranking.second_later = all[1]->predicted - all[0]->predicted;
  return ranking;
}

}  // namespace headgate::policies
