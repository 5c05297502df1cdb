#include "policies/base/random.hpp"
#include "policies/routing/rule.hpp"

namespace headgate::policies::routing {

std::size_t least_in_flight(std::span<const Candidate> candidates, std::uint64_t bits) {
  std::size_t least = 0;
  std::uint32_t ties = 1;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (lighter(candidates[i], candidates[least])) {
      least = i;
      ties = 1;
    } else if (!lighter(candidates[least], candidates[i])) {
      ++ties;
    }
  }
  if (ties == 1) return least;
  std::uint32_t skip = below(bits, ties);
  std::size_t i = least;
  while (skip > 0) {
    ++i;
    if (!lighter(candidates[least], candidates[i])) --skip;
  }
  return i;
}

}  // namespace headgate::policies::routing
