// At most one alarm per small integer key, soonest first.
#pragma once

#include "policies/ranking.hpp"

namespace headgate::policies {

class Alarms : private Ranking<Time> {
 public:
  // `at` never clears it.
  void set(std::uint32_t key, Time at) { at == never ? clear(key) : Ranking::set(key, at); }
  using Ranking::clear, Ranking::empty, Ranking::size, Ranking::image;
  Time soonest() const { return empty() ? never : first_rank(); }
  std::uint32_t soonest_key() const { return first_key(); }
};

}  // namespace headgate::policies
