#include "policies/routing/balancer.hpp"

#include <algorithm>
#include <array>

#include "policies/base/random.hpp"
#include "policies/routing/rule.hpp"

namespace headgate::policies::routing {
namespace {

constexpr std::uint32_t all_up_to = 32;
constexpr std::uint32_t sample = 5;

struct Candidates {
  std::array<Candidate, all_up_to> list;
  std::uint32_t n = 0;
};

}  // namespace

void Balancer::configure(Balance balance, std::span<const BackendPlan> backends) {
  const bool same = std::equal(backends.begin(), backends.end(), members_.begin(), members_.end(),
                               [](const BackendPlan& plan, const Member& member) { return plan.id == member.backend; });
  balance_ = balance;
  members_.clear();
  for (const BackendPlan& plan : backends) {
    members_.push_back({plan.id, static_cast<std::uint32_t>(index(plan.endpoint)), plan.weight});
  }
  open_.reset(members_.size());
  if (!same) {
    next_ = 0;
    riches_.assign(members_.size(), 0);
  }
}

bool Balancer::allowed(std::uint32_t position, std::span<const std::uint32_t> not_these) const {
  const std::uint32_t endpoint = members_[position].endpoint;
  return std::find(not_these.begin(), not_these.end(), endpoint) == not_these.end();
}

std::uint32_t Balancer::next_in_turn(std::span<const std::uint32_t> not_these) {
  std::uint32_t position = next_;
  for (std::uint32_t looked_at = 0; looked_at < open_.count(); ++looked_at) {
    position = open_.next_round(position);
    if (allowed(position, not_these)) {
      next_ = position + 1;
      return position;
    }
    ++position;
  }
  return none;
}

std::uint32_t Balancer::choose(const InFlight& loads, std::span<const std::uint32_t> not_these, const DrawKey& key) {
  if (open_.count() == 0) return none;
  if (balance_ == Balance::round_robin) return next_in_turn(not_these);

  Candidates candidates;
  const auto add = [&](std::uint32_t position) {
    if (!not_these.empty() && !allowed(position, not_these)) return;
    const Member& member = members_[position];
    const InFlight::Load& load = loads[member.endpoint];
    candidates.list[candidates.n++] = {position, load.in_flight, load.limit,
                                       member.hand_weight > 0 ? member.hand_weight : member.weight};
  };
  if (open_.count() <= all_up_to) {
    open_.each(add);
  } else {
    const auto size = static_cast<std::uint32_t>(members_.size());
    std::uint64_t bits = draw(key.seed, key.id, key.use ^ 0x5a);
    // Positions after a gap are a little likelier; the same one may be drawn twice, which costs a candidate.
    for (std::uint32_t i = 0; i < sample; ++i, bits = mix64(bits)) {
      const std::uint32_t position = open_.next_round(below(bits, size));
      const auto drawn = std::span(candidates.list).first(candidates.n);
      if (std::ranges::find(drawn, position, &Candidate::position) == drawn.end()) add(position);
    }
    // Tried ones fell out: take the first that is left, so that an open member is always found.
    if (candidates.n == 0) open_.each([&](std::uint32_t position) { candidates.n == 0 ? add(position) : void(); });
  }
  if (candidates.n == 0) return none;

  const std::span<const Candidate> list = std::span(candidates.list).first(candidates.n);
  const std::uint64_t bits = draw(key.seed, key.id, key.use);
  std::size_t chosen = 0;
  switch (balance_) {
    case Balance::weighted:
      chosen = weighted(list, riches_);
      break;
    case Balance::least_in_flight:
      chosen = least_in_flight(list, bits);
      break;
    case Balance::p2c:
    case Balance::round_robin:
      chosen = p2c(list, bits);
      break;
  }
  return list[chosen].position;
}

}  // namespace headgate::policies::routing
