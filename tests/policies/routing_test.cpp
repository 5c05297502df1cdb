#include <gtest/gtest.h>

#include <numeric>

#include "policies/base/random.hpp"
#include "policies/routing/balancer.hpp"
#include "policies/routing/rule.hpp"

namespace headgate::policies::routing {
namespace {

TEST(OpenSet, WalksInOrderAndGoesRound) {
  OpenSet set;
  set.reset(200);
  EXPECT_EQ(set.next(0), OpenSet::none);
  for (const std::uint32_t position : {3u, 63u, 64u, 199u}) set.set(position, true);
  set.set(64, true);
  EXPECT_EQ(set.count(), 4u);
  EXPECT_EQ(set.next(4), 63u);
  EXPECT_EQ(set.next(65), 199u);
  EXPECT_EQ(set.next(200), OpenSet::none);
  EXPECT_EQ(set.next_round(200), 3u);
  set.set(3, false);
  EXPECT_FALSE(set.has(3));
  EXPECT_EQ(set.next_round(200), 63u);
  std::vector<std::uint32_t> all;
  set.each([&](std::uint32_t position) { all.push_back(position); });
  EXPECT_EQ(all, (std::vector<std::uint32_t>{63, 64, 199}));
}

TEST(Weighted, InterleavesByWeight) {
  const std::vector<Candidate> candidates{{0, 0, 1, 5}, {1, 0, 1, 1}, {2, 0, 1, 1}, {3, 0, 1, 0}};
  std::vector<std::int64_t> riches(4);
  std::string picks;
  for (int i = 0; i < 14; ++i) picks += static_cast<char>('a' + weighted(candidates, riches));
  EXPECT_EQ(picks, "aabacaaaabacaa");
}

TEST(LeastInFlight, ComparesSharesOfTheLimitAndDrawsTies) {
  const std::vector<Candidate> candidates{{0, 2, 4, 1}, {1, 3, 16, 1}, {2, 4, 8, 1}};
  EXPECT_EQ(least_in_flight(candidates, 12345), 1u);
  const std::vector<Candidate> tied{{0, 1, 2, 1}, {1, 0, 2, 1}, {2, 1, 2, 1}, {3, 0, 9, 1}, {4, 0, 1, 1}};
  std::array<int, 5> hits{};
  for (std::uint64_t i = 0; i < 3000; ++i) ++hits[least_in_flight(tied, mix64(i))];
  EXPECT_EQ(hits[0] + hits[2], 0);
  for (const int i : {1, 3, 4}) EXPECT_NEAR(hits[static_cast<std::size_t>(i)], 1000, 120);
}

TEST(P2c, NeverTakesTheHeavierOfTwoAndEvenlyAmongEquals) {
  const std::vector<Candidate> two{{0, 5, 8, 1}, {1, 4, 8, 1}};
  std::array<int, 4> hits{};
  const std::vector<Candidate> equal{{0, 1, 8, 1}, {1, 1, 8, 1}, {2, 1, 8, 1}, {3, 1, 8, 1}};
  for (std::uint64_t i = 0; i < 4000; ++i) {
    ASSERT_EQ(p2c(two, mix64(i)), 1u);
    ++hits[p2c(equal, mix64(i))];
  }
  for (const int n : hits) EXPECT_NEAR(n, 1000, 120);
}

struct Fixture {
  Balancer balancer;
  InFlight loads;
  std::uint64_t serial = 0;

  Fixture(Balance balance, std::uint32_t n) {
    std::vector<BackendPlan> plans;
    loads.grow(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      plans.push_back({BackendId{i}, EndpointId{i}, 1});
      loads.set_limit(i, 1000);
    }
    balancer.configure(balance, plans);
    for (std::uint32_t i = 0; i < n; ++i) balancer.set_open(i, true);
  }
  std::uint32_t choose(std::vector<std::uint32_t> not_these = {}) {
    return balancer.choose(loads, not_these, {1, ++serial, 0});
  }
};

TEST(Balancer, RoundRobinGoesRoundAndSkipsWhatIsShutOrTried) {
  Fixture f(Balance::round_robin, 4);
  f.balancer.set_open(2, false);
  std::vector<std::uint32_t> picks;
  for (int i = 0; i < 6; ++i) picks.push_back(f.choose());
  EXPECT_EQ(picks, (std::vector<std::uint32_t>{0, 1, 3, 0, 1, 3}));
  EXPECT_EQ(f.choose({0}), 1u);
  EXPECT_EQ(f.choose({0, 1}), 3u);
  EXPECT_EQ(f.choose({0, 1, 3}), Balancer::none);
}

TEST(Balancer, EveryRuleLeavesOutWhatWasTriedAndFindsTheLastOne) {
  for (const Balance balance : {Balance::round_robin, Balance::weighted, Balance::least_in_flight, Balance::p2c}) {
    for (const std::uint32_t n : {1u, 3u, 32u, 33u, 200u}) {
      Fixture f(balance, n);
      for (std::uint32_t i = 0; i + 1 < n; ++i) f.balancer.set_open(i, false);
      EXPECT_EQ(f.choose(), n - 1);
      EXPECT_EQ(f.choose({n - 1}), Balancer::none);
    }
    Fixture f(balance, 33);
    std::vector<std::uint32_t> tried(32);
    std::iota(tried.begin(), tried.end(), 0);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(f.choose(tried), 32u);
  }
}

TEST(Balancer, ASampleOfFiveKeepsAThousandLevel) {
  Fixture f(Balance::least_in_flight, 1000);
  for (int i = 0; i < 10000; ++i) f.loads.take(f.choose());
  for (std::uint32_t e = 0; e < 1000; ++e) {
    EXPECT_GE(f.loads[e].in_flight, 5u);
    EXPECT_LE(f.loads[e].in_flight, 13u);
  }
}

TEST(Balancer, KeepsItsTurnOverAReloadOfTheSameMembers) {
  Fixture f(Balance::round_robin, 3);
  f.choose();
  std::vector<BackendPlan> plans;
  for (std::uint32_t i = 0; i < 3; ++i) plans.push_back({BackendId{i}, EndpointId{i}, 1});
  f.balancer.configure(Balance::round_robin, plans);
  for (std::uint32_t i = 0; i < 3; ++i) f.balancer.set_open(i, true);
  EXPECT_EQ(f.choose(), 1u);
}

}  // namespace
}  // namespace headgate::policies::routing
