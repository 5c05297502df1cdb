#include "policies/adaptive_limit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "policies/gap_book.hpp"
#include "policies/moment.hpp"

namespace headgate::policies {
namespace {

constexpr Nanos slo = 50ms;

// A server whose gap grows with the number of its streams: fixed + each * in flight.
struct Server {
  Nanos fixed, each;
  std::uint32_t waiting = 1000;  // who would like to run
  Nanos gap(std::uint32_t in_flight) const { return fixed + each * in_flight; }
};

AdaptiveLimit limit_of(std::uint32_t max = 512) {
  AdaptiveLimit limit;
  limit.configure({.itl = slo, .min = 2, .max = max});
  return limit;
}

// Reports of 100 ms for so long; one answer of 100 tokens a stream and 100 gaps. `answers`: mean gap against that of
// all, for every 50th answer.
Nanos run(AdaptiveLimit& limit, const Server& server, Nanos from, Nanos length, double fiftieth = 1) {
  Nanos now = from;
  double answers = 0;
  std::uint64_t n = 0;
  for (; now < from + length; now += 100ms) {
    const std::uint32_t running = std::min(limit.limit(), server.waiting);
    const Nanos gap = server.gap(running);
    const double gaps = running * (100e6 / static_cast<double>(gap.count()));
    limit.gaps(at(now), static_cast<std::uint32_t>(gaps), gap * static_cast<std::uint32_t>(gaps), running);
    for (answers += gaps / 100; answers >= 1; --answers)
      limit.answered(at(now) - gap * 100, Nanos(static_cast<std::int64_t>(static_cast<double>(gap.count()) *
                                                                          (++n % 50 == 0 ? fiftieth : 1))));
  }
  return now;
}

TEST(AdaptiveLimit, FindsTheMostThatKeepsTheGap) {
  AdaptiveLimit limit = limit_of();
  run(limit, {10ms, 400us}, 0s, 300s);
  EXPECT_NEAR(limit.limit(), 92, 12);  // at 100 it is 10 + 100 * 0.4 = 50; here all answers miss together
}

TEST(AdaptiveLimit, ComesUpFromTwoWithinSeconds) {
  AdaptiveLimit limit = limit_of(2);
  run(limit, {10ms, 400us}, 0s, 10s);
  ASSERT_EQ(limit.limit(), 2u);
  limit.configure({.itl = slo, .min = 2, .max = 512});
  run(limit, {10ms, 400us}, 10s, 12s);
  EXPECT_GE(limit.limit(), 70u);
}

TEST(AdaptiveLimit, LeavesRoomForTheAnswersThatFareWorse) {
  AdaptiveLimit limit = limit_of();
  run(limit, {10ms, 400us}, 0s, 600s, 1.25);  // every 50th is a quarter slower: these must just make it
  EXPECT_NEAR(limit.limit(), 75, 5);          // 10 + 75 * 0.4 = 40 = 50 / 1.25
}

TEST(AdaptiveLimit, FollowsAServerThatBecomesSlower) {
  AdaptiveLimit limit = limit_of();
  Nanos now = run(limit, {10ms, 400us}, 0s, 300s);
  now = run(limit, {20ms, 800us}, now, 5s);
  EXPECT_LE(limit.limit(), 45u);
  now = run(limit, {10ms, 400us}, now, 60s);
  EXPECT_GE(limit.limit(), 80u);
}

// Overload-control P1: a server that is slow alone does not raise it, P17: nor does room that nobody uses.
TEST(AdaptiveLimit, DoesNotDrift) {
  AdaptiveLimit slow = limit_of();
  run(slow, {80ms, 0ms}, 0s, 600s);
  EXPECT_EQ(slow.limit(), 2u);
  AdaptiveLimit idle = limit_of();
  run(idle, {10ms, 400us, 5}, 0s, 600s);
  EXPECT_EQ(idle.limit(), AdaptiveLimit::initial);
}

TEST(AdaptiveLimit, GivesWayWhenTheServerSaysItIsOverloaded) {
  AdaptiveLimit limit = limit_of();
  for (int n = 0; n < 50; ++n) limit.attempted();
  limit.gaps(at(0s), 10, 100ms, 16);
  for (int n = 0; n < 50; ++n) limit.attempted();
  limit.overloaded();
  EXPECT_TRUE(limit.gaps(at(1s), 100, 1s, 16));
  EXPECT_EQ(limit.limit(), 12u);  // 16 * 0.8
  EXPECT_TRUE(limit.gaps(at(2s), 100, 1s, 12));
  EXPECT_GT(limit.limit(), 12u);
}

// Memory is full over 60 and answers are computed twice: each further one costs tokens, though no gap is long.
TEST(AdaptiveLimit, ComesDownWhereMoreInFlightBringsFewerTokens) {
  AdaptiveLimit limit = limit_of();
  for (Nanos now = 0s; now < 1200s; now += 100ms) {
    const std::uint32_t running = limit.limit();
    const auto gaps = static_cast<std::uint32_t>(5 * std::min<double>(running, 3600.0 / running));
    limit.gaps(at(now), gaps, 20ms * gaps, running);
  }
  EXPECT_LT(limit.limit(), 120u);
  EXPECT_GT(limit.limit(), 40u);
}

TEST(AdaptiveLimit, WaitsForEnoughGapsButNotForEver) {
  AdaptiveLimit limit = limit_of();
  EXPECT_FALSE(limit.gaps(at(0s), 1, 10ms, 16));
  EXPECT_FALSE(limit.gaps(at(5s), 1, 10ms, 16));
  EXPECT_TRUE(limit.gaps(at(10s), 1, 10ms, 16));
  EXPECT_FALSE(limit.gaps(at(10s + 500ms), 100, 1s, 16));
  EXPECT_TRUE(limit.gaps(at(11s), 1, 10ms, 16));
}

TEST(GapBook, AddsUpByEndpoint) {
  GapBook book;
  EXPECT_TRUE(book.empty());
  book.add(7, 2, 30ms);
  book.add(1, 1, 5ms);
  book.add(7, 1, 10ms);
  const std::vector<Progress> list = book.take();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].endpoint, EndpointId{7});
  EXPECT_EQ(list[0].gaps, 3u);
  EXPECT_EQ(list[0].gap_sum, 40ms);
  EXPECT_TRUE(book.empty());
  book.add(7, 1, 1ms);
  EXPECT_EQ(book.take().front().gaps, 1u);
}

}  // namespace
}  // namespace headgate::policies
