#include "policies/retry.hpp"

#include <gtest/gtest.h>

namespace headgate::policies {
namespace {

TEST(RetryBudget, StopsRetryingWhenEmptyAndTenSuccessesEarnOne) {
  RetryBudget budget;
  budget.configure({});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(budget.withdraw());
  EXPECT_FALSE(budget.withdraw());
  for (int i = 0; i < 9; ++i) budget.deposit();
  EXPECT_FALSE(budget.withdraw());
  budget.deposit();
  EXPECT_TRUE(budget.withdraw());
  EXPECT_FALSE(budget.withdraw());
}

TEST(RetryBudget, HoldsAtMostItsMaximumAndSurvivesAReload) {
  RetryBudget budget;
  budget.configure({});
  for (int i = 0; i < 1000; ++i) budget.deposit();
  EXPECT_DOUBLE_EQ(budget.credit(), 20);
  budget.configure({});
  EXPECT_DOUBLE_EQ(budget.credit(), 20);
  budget.configure({.budget_max = 5});
  EXPECT_DOUBLE_EQ(budget.credit(), 5);
}

TEST(Evacuation, IsGrantedOncePerDeath) {
  Evacuation evacuation;
  EXPECT_FALSE(evacuation.take());
  evacuation.died(3, false);
  EXPECT_FALSE(evacuation.take());
  evacuation.died(2, true);
  evacuation.died(9, true);
  EXPECT_TRUE(evacuation.take());
  EXPECT_TRUE(evacuation.take());
  EXPECT_FALSE(evacuation.take());
  evacuation.died(9, true);
  EXPECT_FALSE(evacuation.take());
  evacuation.succeeded();
  evacuation.died(1, true);
  EXPECT_TRUE(evacuation.take());
}

TEST(Retry, DependsOnTheKindOfFailure) {
  const RetryOptions anything{}, undelivered{.after_delivery = false};
  struct Row {
    Outcome outcome;
    bool always, only_undelivered;
  };
  const Row rows[] = {
      {{.end = End::ok}, false, false},
      {{.end = End::cancelled}, false, false},
      {{.end = End::out_of_time}, false, false},
      {{.end = End::no_socket}, false, false},
      {{.end = End::connect}, true, true},
      {{.end = End::unsent}, true, true},
      {{.end = End::sent_no_answer}, true, false},
      {{.end = End::status, .status = 500}, true, false},
      {{.end = End::status, .status = 429}, true, false},
      {{.end = End::status, .status = 401}, true, false},
      {{.end = End::in_band_error}, true, false},
      {{.end = End::first_byte_late}, true, false},
      {{.end = End::stalled}, true, false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(may_try_again(anything, row.outcome, 1), row.always) << static_cast<int>(row.outcome.end);
    EXPECT_EQ(may_try_again(undelivered, row.outcome, 1), row.only_undelivered) << static_cast<int>(row.outcome.end);
    EXPECT_FALSE(may_try_again(anything, row.outcome, 3));
  }
}

TEST(Retry, PausesBeforeTheSameEndpoint) {
  const RetryOptions options{};
  constexpr std::uint64_t most = ~std::uint64_t{0};
  EXPECT_EQ(wait_before_same(options, 7s, 0, most), 7s);
  EXPECT_EQ(wait_before_same(options, -1ns, 0, 0), 0s);
  const Nanos expected[] = {50ms, 100ms, 200ms, 400ms, 800ms, 1s, 1s};
  for (std::uint32_t n = 0; n < 7; ++n) {
    EXPECT_LT(wait_before_same(options, -1ns, n, most), expected[n]);
    EXPECT_GT(wait_before_same(options, -1ns, n, most), expected[n] - 1ms);
  }
}

TEST(Retry, TheAnswerTellsHowTheLastAttemptEnded) {
  const auto of = [](End end, std::uint16_t status = 0) { return answer_of({.end = end, .status = status}, false); };
  EXPECT_EQ(of(End::status, 500), Code::as_received);
  EXPECT_EQ(of(End::status, 429), Code::as_received);
  EXPECT_EQ(of(End::status, 401), Code::upstream_auth);
  for (const End end : {End::first_byte_late, End::first_token_late, End::stalled, End::out_of_time}) {
    EXPECT_EQ(of(end), Code::upstream_timeout);
  }
  for (const End end :
       {End::connect, End::unsent, End::sent_no_answer, End::in_band_error, End::malformed, End::truncated}) {
    EXPECT_EQ(of(end), Code::upstream_failed);
  }
  EXPECT_EQ(answer_of({.end = End::status, .status = 500}, true), Code::stream_cut);
  EXPECT_EQ(answer_of({.end = End::out_of_time}, true), Code::stream_cut);
  EXPECT_EQ(answer_of({.end = End::no_socket}, false), Code::no_socket);
}

}  // namespace
}  // namespace headgate::policies
