// Limits inside the Dispatcher: adaptive, prompts without a first token, repeats behind new requests, budgets at the
// pop.
#include <gtest/gtest.h>

#include "policies/history.hpp"

namespace headgate::policies {
namespace {

PlanOf one_endpoint(LimitOptions limit, std::uint32_t slots) {
  return PlanOf{}.pool(1, slots).route({0}).with([&](Plan& p) { p.endpoints[0].limit = limit; });
}

TEST(Limits, AnAdaptiveOneStartsSmallAndServesWhoWaitsAsItGrows) {
  History h(one_endpoint({.mode = LimitMode::adaptive, .itl = 50ms, .prefill_tokens_max = {}}, 100));
  std::vector<RequestId> all;
  for (int n = 0; n < 28; ++n) all.push_back(h.arrive(0s, stream()));
  EXPECT_EQ(h.starts_at(0), 16u);
  h.progress(0s, {{.endpoint = EndpointId{0}, .gaps = 100, .gap_sum = 1s}});
  h.progress(1s, {{.endpoint = EndpointId{0}, .gaps = 100, .gap_sum = 1s}});
  EXPECT_EQ(h.starts_at(0), 28u);
  EXPECT_EQ(h.state(0).max_in_flight, 28u);
  EXPECT_EQ(h.state(0).mean_gap, 10ms);
  // Too slow: none is stopped, none is started.
  h.progress(2s, {{.endpoint = EndpointId{0}, .gaps = 100, .gap_sum = 20s}});
  EXPECT_EQ(h.state(0).max_in_flight, 20u);
  const auto late = h.arrive(2s, stream());
  EXPECT_TRUE(h.waits(late));
  for (int n = 0; n < 9; ++n) h.end(3s, all[static_cast<std::size_t>(n)], ok());
  EXPECT_FALSE(h.waits(late));
  for (std::size_t n = 9; n < 28; ++n) h.end(4s, all[n], ok());
  h.end(4s, late, ok());
  h.expect_idle();
}

TEST(Limits, AnAdaptiveOneNeverExceedsTheSlots) {
  History h(one_endpoint({.mode = LimitMode::adaptive, .itl = 50ms, .prefill_tokens_max = {}}, 20));
  std::vector<RequestId> all;
  for (int n = 0; n < 30; ++n) all.push_back(h.arrive(0s, stream()));
  for (Nanos now = 0s; now < 10s; now += 1s) h.progress(now, {{.endpoint = EndpointId{0}, .gaps = 100, .gap_sum = 1s}});
  EXPECT_EQ(h.starts_at(0), 20u);
  h.progress(11s, {{.endpoint = EndpointId{77}, .gaps = 1, .gap_sum = 1s}});  // nobody's
  for (const RequestId id : all) h.end(12s, id, ok());
  h.expect_idle();
}

TEST(Limits, PromptsWithoutAFirstTokenHoldFurtherOnesBack) {
  History h(one_endpoint({.prefill_tokens_max = 1000}, 100));
  const auto ask = [&](std::uint32_t tokens) { return h.arrive(0s, {.prompt_tokens = tokens, .stream = true}); };
  const auto small = ask(400), large = ask(5000), next = ask(100);
  EXPECT_TRUE(h.runs(small));
  EXPECT_TRUE(h.runs(large));  // 400 are under the limit, so that a prompt over it is served too
  EXPECT_TRUE(h.waits(next));
  h.first_token(1s, small);
  EXPECT_TRUE(h.waits(next));
  h.first_token(2s, large);
  EXPECT_TRUE(h.runs(next));
  EXPECT_EQ(h.state(0).prefill_tokens, 100u);
  h.end(3s, next, failed(End::cancelled));
  EXPECT_EQ(h.state(0).prefill_tokens, 0u);
  for (const auto id : {small, large}) h.end(3s, id, ok());
  h.expect_idle();
}

TEST(Limits, RepeatsAreServedWhenNobodyElseWaits) {
  History h(PlanOf{}.pool(1, 1).route({0}));
  const auto first = h.arrive(0s), repeat = h.arrive(0s, {.repeat = true}), fresh = h.arrive(1s);
  h.end(2s, first, ok());
  EXPECT_TRUE(h.waits(repeat));
  EXPECT_TRUE(h.runs(fresh));
  h.end(3s, fresh, ok());
  EXPECT_TRUE(h.runs(repeat));
  h.end(4s, repeat, ok());
  h.expect_idle();
}

// 20 streams have shown a TTFT of 600 ms.
TEST(Limits, AUnitGoesToWhoCanStillMakeItsBudget) {
  History h(PlanOf{}.pool(1, 1).route({0}).with([](Plan& p) { p.routes[0].budget.ttft = 3s; }));
  Nanos now = 0s;
  for (int n = 0; n < 20; ++n, now += 700ms) {
    const auto id = h.arrive(now, stream());
    h.first_token(now + 600ms, id);
    h.end(now + 650ms, id, ok());
  }
  const auto running = h.arrive(now, stream()), hopeless = h.arrive(now, stream());
  ASSERT_TRUE(h.waits(hopeless));
  const auto young = h.arrive(now + 1s, stream());
  ASSERT_TRUE(h.waits(young));
  h.end(now + 2500ms, running, ok());
  EXPECT_EQ(h.code(hopeless), Code::deadline_exceeded);
  EXPECT_EQ(h.of(hopeless).answer->limit, 3000);
  EXPECT_TRUE(h.runs(young));
  h.end(now + 3s, young, ok());
  h.expect_idle();
}

TEST(Limits, WhatACallerAsksForBindsEarlierThanItsRoute) {
  History h(PlanOf{}.pool(1, 1).route({0}).with([](Plan& p) { p.routes[0].budget.ttft = 10s; }));
  const auto running = h.arrive(0s, stream());
  const auto usual = h.arrive(0s, stream());
  const auto hasty = h.arrive(0s, {.stream = true, .content_by = Time{} + 500ms});
  h.pass_until(499ms);
  EXPECT_TRUE(h.waits(hasty));
  h.pass_until(500ms);
  EXPECT_EQ(h.code(hasty), Code::deadline_exceeded);
  h.pass_until(10s);
  EXPECT_EQ(h.code(usual), Code::deadline_exceeded);
  h.end(11s, running, ok());
  // Of a stream it bounds the attempt, too.
  const auto bound = h.arrive(12s, {.stream = true, .content_by = Time{} + 800ms});
  EXPECT_EQ(h.of(bound).starts.back().first_byte_by, at(12800ms));
  EXPECT_EQ(h.of(bound).starts.back().first_token_by, at(12800ms));
  h.end(13s, bound, ok());
  h.expect_idle();
}

}  // namespace
}  // namespace headgate::policies
