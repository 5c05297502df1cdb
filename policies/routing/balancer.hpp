// The members of one pool and the rule that chooses among them. Up to 32 candidates are all looked at; of more, 5 are
// drawn and the rule chooses among these (power of d choices: the fifth adds little), so that a choice costs the same
// in a pool of a thousand. round_robin needs no sample: it takes the next one that is open.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policies/limit.hpp"
#include "policies/plan.hpp"
#include "policies/routing/open_set.hpp"

namespace headgate::policies::routing {

struct Member {
  BackendId backend{};
  std::uint32_t endpoint = 0;
  std::uint32_t weight = 1, hand_weight = 0;  // 0: none set by hand
  template <class A>
  void image(A& a) {
    a(backend, endpoint, weight, hand_weight);
  }
};

struct DrawKey {
  std::uint64_t seed = 0, id = 0, use = 0;
};

class Balancer {
 public:
  static constexpr std::uint32_t none = OpenSet::none;

  // Nobody is open afterwards. What the rule has learnt is kept while the same backends stand in the same order.
  void configure(Balance balance, std::span<const BackendPlan> backends);

  std::span<const Member> members() const { return members_; }
  void set_open(std::uint32_t position, bool open) { open_.set(position, open); }
  const OpenSet& open() const { return open_; }
  void set_hand_weight(std::uint32_t position, std::uint32_t weight) { members_[position].hand_weight = weight; }

  // Position of the member to use, or none. `not_these`: endpoints to leave out.
  std::uint32_t choose(const InFlight& loads, std::span<const std::uint32_t> not_these, const DrawKey& key);
  template <class A>
  void image(A& a) {
    a(balance_, members_, open_, next_, riches_);
  }

 private:
  bool allowed(std::uint32_t position, std::span<const std::uint32_t> not_these) const;
  std::uint32_t next_in_turn(std::span<const std::uint32_t> not_these);

  Balance balance_ = Balance::p2c;
  std::vector<Member> members_;
  OpenSet open_;
  std::uint32_t next_ = 0;            // round_robin
  std::vector<std::int64_t> riches_;  // weighted
};

}  // namespace headgate::policies::routing
