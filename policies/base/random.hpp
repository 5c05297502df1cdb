// Draws that replay: each is a pure function of (seed, id, use), so adding a draw in one place never shifts another.
// Mixing is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#pragma once

#include <cstdint>

namespace headgate {

constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// 64 uniform bits for one use of one id.
constexpr std::uint64_t draw(std::uint64_t seed, std::uint64_t id, std::uint64_t use) {
  return mix64(mix64(mix64(seed) ^ id) ^ use);
}

// Uniform in [0, bound) by multiply-shift; the bias is below bound / 2^32. bound >= 1.
constexpr std::uint32_t below(std::uint64_t bits, std::uint32_t bound) {
  return static_cast<std::uint32_t>(((bits >> 32) * bound) >> 32);
}

// Uniform in [0, 1) with 53 bits.
constexpr double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace headgate
