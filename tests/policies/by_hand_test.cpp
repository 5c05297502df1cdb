// What an operator sets on a running Dispatcher: endpoints drained and taken back, weights. Stories in virtual time.
#include <gtest/gtest.h>

#include "policies/history.hpp"

namespace headgate::policies {
namespace {

constexpr HandSetting drain{.drained = true, .weight = {}}, undrain{.drained = false, .weight = {}};

TEST(ByHand, ADrainedEndpointEndsWhatItHasAndGetsNothingNew) {
  History h(PlanOf{}.pool(2, 4).route({0}));
  const auto first = h.arrive(0s);
  const std::uint32_t e = h.endpoint(first);
  h.set_by_hand(1s, e, drain);
  EXPECT_TRUE(h.state(e).drained);
  EXPECT_EQ(h.state(e).in_flight, 1u);
  std::vector<RequestId> more;
  for (int n = 0; n < 4; ++n) EXPECT_NE(h.endpoint(more.emplace_back(h.arrive(1s))), e);
  const auto waiting = more.emplace_back(h.arrive(1s));
  EXPECT_TRUE(h.waits(waiting));
  h.end(2s, first, ok());
  EXPECT_TRUE(h.waits(waiting)) << "the unit that came free is the drained endpoint's";
  h.set_by_hand(3s, e, undrain);
  EXPECT_TRUE(h.runs(waiting));
  EXPECT_EQ(h.endpoint(waiting), e);
  for (const RequestId id : more) h.end(4s, id, ok());
  h.expect_idle();
}

TEST(ByHand, WhoWaitsForTheLastOneIsToldAtOnce) {
  History h(PlanOf{}.pool(1, 1).route({0}));
  const auto first = h.arrive(0s);
  const auto waiting = h.arrive(0s);
  h.set_by_hand(1s, 0, drain);
  EXPECT_EQ(h.code(waiting), Code::no_healthy_backend);
  EXPECT_FALSE(h.servable(0));
  h.end(2s, first, ok());
  EXPECT_EQ(h.code(h.arrive(2s)), Code::no_healthy_backend);
  h.set_by_hand(3s, 0, undrain);
  EXPECT_TRUE(h.servable(0));
  h.end(3s, h.arrive(3s), ok());
  h.expect_idle();
}

TEST(ByHand, AFailedAttemptGoesToTheNextPoolWhenItsOwnIsDrained) {
  History h(PlanOf{}.pool(2).pool(1).route({0, 1}));
  const auto r = h.arrive(0s);
  h.set_by_hand(1s, 1 - h.endpoint(r), drain);
  h.end(2s, r, status(500));
  EXPECT_EQ(h.endpoint(r), 2u);
  h.end(3s, r, ok());
}

TEST(ByHand, AReplanKeepsIt) {
  const PlanOf plan = PlanOf{}.pool(2).route({0});
  History h(plan);
  h.set_by_hand(0s, 0, {.drained = true, .weight = 7});
  h.replan(1s, plan.plan);
  EXPECT_TRUE(h.state(0).drained);
  EXPECT_EQ(h.state(0).hand_weight, 7u);
  for (int n = 0; n < 10; ++n) EXPECT_EQ(h.endpoint(h.arrive(1s)), 1u);
}

TEST(ByHand, AWeightStandsInPlaceOfThePlansUntilItIsTakenBack) {
  History h(PlanOf{}.pool(2, 100, Balance::weighted).route({0}));
  const auto share_of_first = [&](Nanos when) {
    int first = 0;
    for (int n = 0; n < 40; ++n) {
      const auto r = h.arrive(when);
      first += h.endpoint(r) == 0;
      h.end(when, r, ok());
    }
    return first;
  };
  EXPECT_EQ(share_of_first(0s), 20);
  h.set_by_hand(1s, 0, {.drained = {}, .weight = 3});
  EXPECT_EQ(share_of_first(1s), 30);
  h.set_by_hand(2s, 0, {.drained = {}, .weight = 0});
  EXPECT_EQ(share_of_first(2s), 20);
}

}  // namespace
}  // namespace headgate::policies
