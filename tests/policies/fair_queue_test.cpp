#include "policies/fair_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "policies/base/random.hpp"
#include "policies/moment.hpp"

namespace headgate::policies {
namespace {

class FairQueueOrder : public ::testing::Test {
 protected:
  FairQueueOrder() {
    table_.links.resize(4096 * pools_max);
    table_.turns.resize(4096);
    queue_.configure(default_classes());
  }
  void wait(std::uint32_t slot, Turn turn) {
    turn.number = ++number_;
    table_.turns[slot] = turn;
    queue_.push(table_, slot * pools_max);
  }
  // Slot of who is served next.
  std::uint32_t serve(Nanos now = 0s) {
    const std::uint32_t place = queue_.first();
    charge_ = queue_.charge(at(now), table_, place);
    queue_.take_out(table_, place);
    return place / pools_max;
  }
  std::vector<std::uint32_t> serve_all() {
    std::vector<std::uint32_t> slots;
    while (queue_.first() != FairQueue::none) slots.push_back(serve());
    return slots;
  }
  using Slots = std::vector<std::uint32_t>;

  FairQueue::Table table_;
  FairQueue queue_;
  FairQueue::Charge charge_;
  std::uint64_t number_ = 0;
};

TEST_F(FairQueueOrder, OneTenantsRequestsGoByDeadlineThenAsTheyCame) {
  for (const auto& [slot, by] : std::map<std::uint32_t, Nanos>{{0, 5s}, {1, 2s}, {2, 9s}, {3, 2s}})
    wait(slot, {.by = at(by), .tokens = 10});
  wait(4, {.tokens = 10});  // no deadline
  EXPECT_EQ(serve_all(), (Slots{1, 3, 0, 2, 4}));
}

TEST_F(FairQueueOrder, WhoLeavesIsNotServed) {
  for (std::uint32_t slot = 0; slot < 5; ++slot) wait(slot, {.tokens = 10});
  queue_.take_out(table_, 2 * pools_max);
  queue_.take_out(table_, 0);
  EXPECT_EQ(serve_all(), (Slots{1, 3, 4}));
  EXPECT_EQ(queue_.queued(Class::interactive), 0u);
}

TEST_F(FairQueueOrder, TenantsTakeTurnsByTokensPerWeight) {
  for (std::uint32_t n = 0; n < 4; ++n) {
    wait(n, {.tenant = 1, .weight = 1, .tokens = 100});
    wait(10 + n, {.tenant = 2, .weight = 2, .tokens = 100});
  }
  // Counters after each service: 1: 100; 2: 50, 100 (tie: the lower id); ...
  EXPECT_EQ(serve_all(), (Slots{0, 10, 11, 1, 12, 13, 2, 3}));
}

TEST_F(FairQueueOrder, WhoComesLateHasSavedNothingUp) {
  for (std::uint32_t n = 0; n < 6; ++n) wait(n, {.tenant = 1, .tokens = 100});
  for (int n = 0; n < 3; ++n) serve();  // tenant 1 has had 300, alone
  for (std::uint32_t n = 0; n < 3; ++n) wait(10 + n, {.tenant = 2, .tokens = 100});
  EXPECT_EQ(serve_all(), (Slots{3, 10, 4, 11, 5, 12}));
}

TEST_F(FairQueueOrder, APauseForgetsNoDebt) {
  for (std::uint32_t n = 0; n < 5; ++n) wait(n, {.tenant = 1, .tokens = 100});
  wait(10, {.tenant = 2, .tokens = 1000});
  EXPECT_EQ(serve(), 0u);
  EXPECT_EQ(serve(), 10u);  // tenant 2 has had 1000 now and waits no more
  wait(11, {.tenant = 2, .tokens = 100});
  EXPECT_EQ(serve_all(), (Slots{1, 2, 3, 4, 11}));
}

TEST_F(FairQueueOrder, WhatWasExpectedWronglyIsCorrected) {
  for (std::uint32_t n = 0; n < 3; ++n) {
    wait(n, {.tenant = 1, .tokens = 100});
    wait(10 + n, {.tenant = 2, .tokens = 100});
  }
  EXPECT_EQ(serve(), 0u);
  const FairQueue::Charge first = charge_;
  EXPECT_EQ(serve(), 10u);
  queue_.correct(first, table_.turns[0], 250);  // it cost 350
  EXPECT_EQ(serve_all(), (Slots{11, 12, 1, 2}));
  queue_.correct({.flow = first.flow, .serial = first.serial + 1000}, table_.turns[0],
                 -1000);  // of a flow that is gone
}

TEST_F(FairQueueOrder, ClassesShareByWeightAndNoneStarves) {
  std::uint32_t slot = 0;
  std::map<Class, int> served;
  for (int n = 0; n < 400; ++n) {
    for (const Class klass : {Class::interactive, Class::standard, Class::batch, Class::sheddable})
      wait(slot++, {.klass = klass, .tokens = 100});
  }
  for (int n = 0; n < 300; ++n) ++served[table_.turns[serve()].klass];
  EXPECT_NEAR(served[Class::interactive], 160, 2);
  EXPECT_NEAR(served[Class::standard], 80, 2);
  EXPECT_NEAR(served[Class::batch], 40, 2);
  EXPECT_NEAR(served[Class::sheddable], 20, 2);
}

TEST_F(FairQueueOrder, AFloorHoldsWhateverTheWeights) {
  ClassPlans classes = default_classes();
  classes[0].weight = 100'000;
  queue_.configure(classes);
  std::uint32_t slot = 0;
  std::map<Class, int> served;
  for (int n = 0; n < 500; ++n) {
    for (const Class klass : {Class::interactive, Class::standard, Class::sheddable})
      wait(slot++, {.klass = klass, .tokens = 100});
  }
  for (int n = 0; n < 400; ++n) ++served[table_.turns[serve(n * 10ms)].klass];
  EXPECT_NEAR(served[Class::standard], 80, 3);
  EXPECT_LE(served[Class::sheddable], 1);
}

TEST_F(FairQueueOrder, AClassThatWasQuietGoesFirst) {
  std::uint32_t slot = 0;
  for (int n = 0; n < 50; ++n) wait(slot++, {.klass = Class::sheddable, .tokens = 100});
  for (int n = 0; n < 20; ++n) serve(n * 10ms);
  for (std::uint32_t n = 0; n < 3; ++n) wait(1000 + n, {.klass = Class::interactive, .tokens = 100});
  EXPECT_EQ(serve(200ms), 1000u);
  EXPECT_EQ(serve(200ms), 1001u);
  EXPECT_EQ(serve(200ms), 1002u);
}

TEST_F(FairQueueOrder, PredictsWhoIsServedBefore) {
  for (std::uint32_t n = 0; n < 8; ++n) wait(n, {.tenant = 1, .tokens = 100});
  EXPECT_EQ(queue_.ahead(Class::interactive, 1, 1), 8u);
  EXPECT_EQ(queue_.ahead(Class::interactive, 2, 1), 1u);  // tenant 1 once
  EXPECT_EQ(queue_.ahead(Class::interactive, 2, 4), 0u);
  wait(20, {.tenant = 2, .tokens = 100});
  wait(21, {.tenant = 2, .tokens = 100});
  EXPECT_EQ(queue_.ahead(Class::interactive, 2, 1), 5u);   // its own two, and three turns of tenant 1
  EXPECT_EQ(queue_.ahead(Class::interactive, 1, 1), 10u);  // everybody
  EXPECT_EQ(queue_.ahead(Class::batch, 1, 1), 0u);
}

TEST_F(FairQueueOrder, SharesAreThoseOfWhoWaits) {
  EXPECT_DOUBLE_EQ(queue_.share(Class::interactive), 1);
  wait(0, {.klass = Class::interactive, .tokens = 1});
  EXPECT_NEAR(queue_.share(Class::interactive), 1, 1e-9);
  EXPECT_NEAR(queue_.share(Class::sheddable), 1.0 / 9, 1e-9);
  EXPECT_NEAR(queue_.share(Class::standard), 4.0 / 12, 1e-9);
}

// Any history against a plain model: the same one is served, and flows are forgotten when they say nothing more.
TEST_F(FairQueueOrder, AgreesWithAPlainTableUnderAnyHistory) {
  std::map<std::uint32_t, Turn> waiting;
  std::map<std::uint32_t, double> counters;
  double last = 0;
  for (std::uint64_t step = 0; step < 30'000; ++step) {
    const std::uint64_t bits = draw(3, step, 0);
    const std::uint32_t slot = below(bits, 400);
    if (below(mix64(bits), 5) < 3 && !waiting.contains(slot)) {
      const std::uint32_t tenant = below(mix64(bits + 1), 40);
      const Turn turn{.by = at(Nanos{below(mix64(bits + 2), 1000)}),
                      .tenant = tenant,
                      .weight = 1 + tenant % 4,
                      .tokens = 1 + below(mix64(bits + 3), 100)};
      const auto its = [tenant](const auto& entry) { return entry.second.tenant == tenant; };
      if (std::ranges::none_of(waiting, its)) {
        double least = last;
        if (!waiting.empty()) least = 1e18;
        for (const auto& [other, of] : waiting) least = std::min(least, counters[of.tenant]);
        counters[tenant] = std::max(counters[tenant], least);
      }
      wait(slot, turn);
      waiting[slot] = table_.turns[slot];
    } else if (waiting.contains(slot) && below(mix64(bits), 3) == 0) {
      queue_.take_out(table_, slot * pools_max);
      waiting.erase(slot);
    } else if (!waiting.empty()) {
      const std::uint32_t next = queue_.first() / pools_max;
      ASSERT_TRUE(waiting.contains(next)) << step;
      const Turn turn = waiting[next];
      for (const auto& [other, of] : waiting) {
        ASSERT_GE(counters[of.tenant], counters[turn.tenant]) << step;
        if (of.tenant == turn.tenant) {
          ASSERT_GE(std::tuple(of.by, of.number), std::tuple(turn.by, turn.number)) << step;
        }
      }
      ASSERT_EQ(serve(), next) << step;
      last = std::max(last, counters[turn.tenant]);
      counters[turn.tenant] += static_cast<double>(turn.tokens * 1024ll / turn.weight);
      waiting.erase(next);
      if (waiting.empty()) last = std::max(last, counters[turn.tenant]);
    }
    ASSERT_EQ(queue_.queued(Class::interactive), waiting.size());
  }
  EXPECT_LE(queue_.flows(), 40u);
  serve_all();
  for (std::uint32_t slot = 1000; slot < 3000; ++slot) {  // each another tenant, served at once
    wait(slot, {.tenant = slot, .tokens = 10});
    serve();
  }
  EXPECT_LE(queue_.flows(), 60u);
}

// Sheng et al., theorem 4.4: two who wait all along differ by at most 2 U, where U is the most that one request costs.
TEST_F(FairQueueOrder, BackloggedTenantsDifferByLessThanTwiceTheDearestRequest) {
  constexpr std::uint32_t dearest = 4000;
  std::map<std::uint32_t, double> had;
  std::uint64_t step = 0;
  const auto ask = [&](std::uint32_t slot, std::uint32_t tenant) {
    const std::uint32_t tokens = 1 + below(draw(9, ++step, tenant), tenant == 3 ? dearest : dearest / 10);
    wait(slot, {.tenant = tenant, .weight = tenant, .tokens = tokens});
  };
  for (std::uint32_t slot = 0; slot < 500; ++slot) ask(slot, 1 + slot % 5);
  for (int n = 0; n < 50'000; ++n) {
    const std::uint32_t slot = serve();
    const Turn turn = table_.turns[slot];
    had[turn.tenant] += static_cast<double>(turn.tokens) / turn.weight;
    ask(slot, turn.tenant);
    if (had.size() < 5) continue;
    const auto [least, most] = std::ranges::minmax(had | std::views::values);
    ASSERT_LE(most - least, 2.0 * dearest) << n;
  }
}

}  // namespace
}  // namespace headgate::policies
