#include "policies/base/random.hpp"
#include "policies/routing/rule.hpp"

namespace headgate::policies::routing {

std::size_t p2c(std::span<const Candidate> candidates, std::uint64_t bits) {
  const auto n = static_cast<std::uint32_t>(candidates.size());
  if (n == 1) return 0;
  const std::uint32_t one = below(bits, n);
  std::uint32_t other = below(mix64(bits), n - 1);
  if (other >= one) ++other;
  return lighter(candidates[other], candidates[one]) ? other : one;
}

}  // namespace headgate::policies::routing
