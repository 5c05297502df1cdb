// How one of a pool's members is chosen. A rule sees the candidates that could take the request now (in rotation, a
// unit free, not yet tried by it), in order of their position in the pool, never none, and returns an index into them.
// Rules keep no load of their own: it is counted at the choice, by InFlight. Ties are drawn, so that a burst spreads.
// round_robin looks at no candidates: balancer.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headgate::policies::routing {

struct Candidate {
  std::uint32_t position;
  std::uint32_t in_flight, limit;  // in_flight < limit
  std::uint32_t weight;
};

// Smooth weighted round robin (nginx): everybody gains its weight, the richest is chosen and pays what all gained. Over
// any sum-of-weights choices each gets its weight, interleaved: 5,1,1 gives a a b a c a a. `riches` by position.
// Weight 0 is chosen only where all have it.
std::size_t weighted(std::span<const Candidate> candidates, std::span<std::int64_t> riches);

// Smallest in_flight / limit; ties are drawn.
std::size_t least_in_flight(std::span<const Candidate> candidates, std::uint64_t bits);

// Two different ones drawn, the one with the smaller in_flight / limit (Mitzenmacher, The Power of Two Choices, 2001).
std::size_t p2c(std::span<const Candidate> candidates, std::uint64_t bits);

// a is less loaded than b.
constexpr bool lighter(const Candidate& a, const Candidate& b) {
  return std::uint64_t{a.in_flight} * b.limit < std::uint64_t{b.in_flight} * a.limit;
}

}  // namespace headgate::policies::routing
