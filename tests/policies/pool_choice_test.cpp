// Which pools a request looks at, in which order, and when it leaves one for the next.
#include "policies/pool_choice.hpp"

#include <gtest/gtest.h>

#include "policies/base/random.hpp"
#include "policies/history.hpp"

namespace headgate::policies {
namespace {

using Order = std::vector<std::uint32_t>;

Order ranked(PoolOrder order, const std::vector<PoolCandidate>& candidates, const PoolWish& wish = {},
             std::uint64_t bits = 0) {
  const PoolRanking ranking = rank_pools(order, candidates, wish, bits);
  return {ranking.pools.begin(), ranking.pools.begin() + ranking.n};
}

// Pool 0 is dear and soon, 1 cheap and late, 2 between them.
const std::vector<PoolCandidate> three{
    {.pool = 0, .weight = 1, .quality = 0.9, .expected_usd = 0.05, .most_usd = 0.1, .predicted = 300ms},
    {.pool = 1, .weight = 2, .quality = 0.4, .expected_usd = 0.01, .most_usd = 0.02, .predicted = 900ms},
    {.pool = 2, .weight = 5, .quality = 0.6, .expected_usd = 0.03, .most_usd = 0.06, .predicted = 500ms}};

TEST(PoolChoice, EachOrderByItsOwnFigure) {
  EXPECT_EQ(ranked(PoolOrder::priority, three), (Order{0, 1, 2}));
  EXPECT_EQ(ranked(PoolOrder::cheapest_within_budget, three), (Order{1, 2, 0}));
  EXPECT_EQ(ranked(PoolOrder::fastest, three), (Order{0, 2, 1}));
  EXPECT_EQ(rank_pools(PoolOrder::fastest, three, {}, 0).second_later, Nanos{200ms});
}

TEST(PoolChoice, LeavesOutWhatIsNotGoodEnoughOrTooDear) {
  EXPECT_EQ(ranked(PoolOrder::cheapest_within_budget, three, {.quality_min = 0.5}), (Order{2, 0}));
  EXPECT_EQ(ranked(PoolOrder::cheapest_within_budget, three, {.quality_min = 0.6}), (Order{2, 0}));
  EXPECT_EQ(ranked(PoolOrder::priority, three, {.usd_max = 0.06}), (Order{1, 2})) << "by the most, not the expected";
  EXPECT_EQ(ranked(PoolOrder::priority, three, {.quality_min = 0.5, .usd_max = 0.05}), Order{});
}

TEST(PoolChoice, WhatMissesTheBudgetComesLastButForTheFastest) {
  auto late = three;
  late[1].in_budget = false;
  EXPECT_EQ(ranked(PoolOrder::cheapest_within_budget, late), (Order{2, 0, 1}));
  late[0].in_budget = false;
  EXPECT_EQ(ranked(PoolOrder::priority, late), (Order{2, 0, 1}));
  EXPECT_EQ(ranked(PoolOrder::fastest, late), (Order{0, 2, 1}));
}

TEST(PoolChoice, EqualOnesStayAsWritten) {
  const std::vector<PoolCandidate> same{{.pool = 3}, {.pool = 1}, {.pool = 2}};
  for (const PoolOrder order : {PoolOrder::priority, PoolOrder::cheapest_within_budget, PoolOrder::fastest})
    EXPECT_EQ(ranked(order, same), (Order{3, 1, 2}));
}

// Shares of the first place after 40,000 draws: within four standard deviations of 1/8, 2/8, 5/8.
TEST(PoolChoice, WeightsAreSharesOfTheFirstPlace) {
  std::array<double, 3> first{};
  constexpr int draws = 40'000;
  for (std::uint64_t n = 0; n < draws; ++n) {
    const Order order = ranked(PoolOrder::weighted, three, {}, draw(7, n, 1));
    ASSERT_EQ(order.size(), 3u);
    ++first[order[0]];
    if (order[0] == 1) {
      EXPECT_EQ(order, (Order{1, 0, 2}));
    }
  }
  EXPECT_NEAR(first[0] / draws, 1 / 8.0, 0.0067);
  EXPECT_NEAR(first[1] / draws, 2 / 8.0, 0.0087);
  EXPECT_NEAR(first[2] / draws, 5 / 8.0, 0.0097);
}

// Two pools of one unit each: the first is dear and good, the second cheap and poor.
Plan two_tiers(PoolOrder order) {
  Plan plan = PlanOf{}.pool(1, 1).pool(1, 1).route({0, 1}).plan;
  plan.pools[0].offer = {.input_usd = 10, .output_usd = 30, .quality = 0.9};
  plan.pools[1].offer = {.input_usd = 1, .output_usd = 3, .quality = 0.5};
  plan.routes[0].order = order;
  return plan;
}

std::size_t place(const History& h, RequestId id) { return index(h.of(id).starts.at(0).endpoint); }

TEST(PoolChoice, TheCheapestFirstWhereItIsGoodEnough) {
  History h(two_tiers(PoolOrder::cheapest_within_budget));
  const auto cheap = h.arrive(0s), spilled = h.arrive(0s);
  EXPECT_EQ(place(h, cheap), 1u);
  EXPECT_EQ(place(h, spilled), 0u) << "no budget says that it may wait";
  h.end(1s, cheap, ok());
  h.end(1s, spilled, ok());
  const auto good = h.arrive(2s, {.min_quality = 0.8});
  EXPECT_EQ(place(h, good), 0u);
  const auto waits = h.arrive(2s, {.min_quality = 0.8});
  EXPECT_TRUE(h.waits(waits)) << "the free unit of the other pool is not for it";
  h.end(3s, good, ok());
  EXPECT_EQ(place(h, waits), 0u);
  h.end(4s, waits, ok());
  h.expect_idle();
}

// 1,000 prompt tokens, at most 100 of output: 0.013 USD in the first pool, 0.0013 in the second.
TEST(PoolChoice, WhatCouldCostMoreIsRefusedWithTheFigures) {
  History h(two_tiers(PoolOrder::priority));
  Arrival arrival{.prompt_tokens = 1000, .max_output_tokens = 100, .max_cost_usd = 0.0013};
  const auto fits = h.arrive(0s, arrival);
  EXPECT_EQ(place(h, fits), 1u);
  arrival.max_cost_usd = 0.0012;
  const auto dear = h.arrive(0s, arrival);
  ASSERT_EQ(h.code(dear), Code::cost_budget_unmeetable);
  EXPECT_EQ(h.of(dear).answer->value, 1300);
  EXPECT_EQ(h.of(dear).answer->limit, 1200);
  EXPECT_FALSE(h.of(dear).answer->repeat_ok);
  arrival = {.prompt_tokens = 1000, .max_output_tokens = 100, .max_cost_usd = 0.012, .min_quality = 0.6};
  EXPECT_EQ(h.of(h.arrive(0s, arrival)).answer->value, 13000) << "of those good enough";
  arrival.min_quality = 0.95;
  EXPECT_EQ(h.of(h.arrive(0s, arrival)).answer->value, -1);
  EXPECT_EQ(h.turn_away(0s, arrival), std::nullopt);
  h.end(1s, fits, ok());
  h.expect_idle();
}

TEST(PoolChoice, RoutesAndClassesHaveWishesToo) {
  Plan plan = two_tiers(PoolOrder::cheapest_within_budget);
  plan.routes[0].budget.min_quality = 0.6;
  plan.classes[static_cast<std::size_t>(Class::batch)].budget.max_cost_usd = 0.001;
  History h(plan);
  const auto good = h.arrive(0s);
  EXPECT_EQ(place(h, good), 0u);
  EXPECT_EQ(h.code(h.arrive(0s, {.klass = Class::batch, .prompt_tokens = 1000})), Code::cost_budget_unmeetable);
  h.end(1s, good, ok());
  h.expect_idle();
}

// Of a stream with that many tokens of answer; it runs from `from` on, alone.
void serve(History& h, RequestId id, Nanos from, Nanos ttft, Nanos total, std::uint32_t tokens) {
  h.first_token(from + ttft, id);
  h.end(from + total, id, {.output_tokens = tokens});
}

// The first pool begins after 1 s, the second after 0.1 s; once 20 answers of each are known the second comes first,
// and a request waits for it only as long as the first is slower.
TEST(PoolChoice, TheFastestIsFoundOutAndWaitedForNoLongerThanItIsWorth) {
  History h(two_tiers(PoolOrder::fastest));
  Nanos t = 0s;
  for (int n = 0; n < 20; ++n, t += 2s) {
    const auto a = h.arrive(t, stream()), b = h.arrive(t, stream());
    ASSERT_NE(place(h, a), place(h, b));
    const auto [slow, quick] = place(h, a) == 0 ? std::pair(a, b) : std::pair(b, a);
    serve(h, quick, t, 100ms, 500ms, 10);
    serve(h, slow, t, 1s, 1500ms, 10);
  }
  const auto quick = h.arrive(t, stream());
  EXPECT_EQ(place(h, quick), 1u);
  const auto waits = h.arrive(t, stream());
  EXPECT_TRUE(h.waits(waits)) << "the slow one is free, but later";
  h.pass_until(t + 399ms);  // 1 s against 0.1 s after 0.5 s of waiting
  EXPECT_TRUE(h.waits(waits));
  h.pass_until(t + 400ms);
  ASSERT_TRUE(h.runs(waits));
  EXPECT_EQ(place(h, waits), 0u);
  h.end(t + 1s, quick, ok());
  h.end(t + 2s, waits, ok());
  // Not used for over 10 s: what is known of both is no longer believed, so the first as written is asked again.
  const auto again = h.arrive(t + 13s, stream());
  EXPECT_EQ(place(h, again), 0u);
  h.end(t + 14s, again, ok());
  h.expect_idle();
}

// The cheap pool gives a token each 100 ms; answers have 50.
TEST(PoolChoice, ThePoolThatWouldMissABudgetIsPassedThoughItIsCheaper) {
  Plan plan = two_tiers(PoolOrder::cheapest_within_budget);
  plan.routes[0].budget.itl = 120ms;
  History h(plan);
  Nanos t = 0s;
  for (int n = 0; n < 20; ++n, t += 6s) {
    const auto cheap = h.arrive(t, stream()), dear = h.arrive(t, stream());
    ASSERT_EQ(place(h, cheap), 1u);
    for (const auto id : {dear, cheap}) h.first_token(t + 100ms, id);
    h.end(t + 1080ms, dear, {.output_tokens = 50});
    h.end(t + 5s, cheap, {.output_tokens = 50});
  }
  t -= 500ms;  // while it is known
  const auto slow = h.arrive(t, stream());
  EXPECT_EQ(place(h, slow), 1u) << "100 ms between tokens";
  h.end(t + 1s, slow, failed(End::cancelled));
  Arrival soon = stream();
  soon.deadline = Time{} + 4s;
  const auto quick = h.arrive(t + 1s, soon);
  EXPECT_EQ(place(h, quick), 0u) << "5 s are predicted there";
  h.end(t + 2s, quick, ok());
  plan.routes[0].budget.itl = 90ms;
  h.replan(t + 2s, plan);
  const auto steady = h.arrive(t + 2s, stream());
  EXPECT_EQ(place(h, steady), 0u);
  h.end(t + 3s, steady, ok());
  h.expect_idle();
}

// A plan that makes every pool too poor for who waits.
TEST(PoolChoice, AReloadThatLeavesNoPoolAnswersWhoWaits) {
  Plan plan = two_tiers(PoolOrder::priority);
  History h(plan);
  const auto a = h.arrive(0s, {.min_quality = 0.8}), b = h.arrive(0s, {.min_quality = 0.8});
  EXPECT_TRUE(h.waits(b));
  plan.pools[0].offer.quality = 0.7;
  h.replan(1s, plan);
  EXPECT_EQ(h.code(b), Code::cost_budget_unmeetable);
  h.end(2s, a, failed(End::connect));
  EXPECT_EQ(h.code(a), Code::upstream_failed) << "it may not go on to another";
  h.expect_idle();
}

}  // namespace
}  // namespace headgate::policies
