#include "policies/routing/rule.hpp"

namespace headgate::policies::routing {

std::size_t weighted(std::span<const Candidate> candidates, std::span<std::int64_t> riches) {
  std::size_t richest = candidates.size();
  std::int64_t gained = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (candidate.weight == 0) continue;
    gained += candidate.weight;
    riches[candidate.position] += candidate.weight;
    if (richest == candidates.size() || riches[candidate.position] > riches[candidates[richest].position]) richest = i;
  }
  if (richest == candidates.size()) return 0;
  riches[candidates[richest].position] -= gained;
  return richest;
}

}  // namespace headgate::policies::routing
