#include "policies/tenant.hpp"

#include <gtest/gtest.h>

#include "policies/base/random.hpp"
#include "policies/history.hpp"
#include "policies/moment.hpp"

namespace headgate::policies {
namespace {

TEST(Gcra, GivesALimitAtOnceAndThenItsRate) {
  Gcra rate;  // 60 a minute: one a second
  for (int n = 0; n < 60; ++n) {
    ASSERT_EQ(rate.wait(at(0s), 60, 1), 0s) << n;
    rate.take(at(0s), 60, 1);
  }
  EXPECT_EQ(rate.wait(at(0s), 60, 1), 1s);
  EXPECT_EQ(rate.wait(at(400ms), 60, 1), 600ms);
  EXPECT_EQ(rate.wait(at(0s), 60, 5), 5s);
  EXPECT_EQ(rate.remaining(at(0s), 60), 0u);
  EXPECT_EQ(rate.remaining(at(30s), 60), 30u);
  EXPECT_EQ(rate.full_in(at(30s)), 30s);
  EXPECT_EQ(rate.wait(at(1s), 60, 1), 0s);
  rate.take(at(1s), 60, 1);
  EXPECT_EQ(rate.wait(at(1s), 60, 1), 1s);
  EXPECT_EQ(rate.remaining(at(10min), 60), 60u);  // never more than a limit
}

TEST(Gcra, CorrectsWhatWasTakenAndOwesAtMostOneBurst) {
  Gcra rate;
  rate.take(at(0s), 600, 600);
  rate.correct(at(0s), 600, -500);  // it took 100
  EXPECT_EQ(rate.remaining(at(0s), 600), 500u);
  rate.correct(at(0s), 600, 100'000);
  EXPECT_EQ(rate.wait(at(0s), 600, 1), 1min + 100ms);
  rate.correct(at(0s), 600, -1'000'000);  // a refund gives no more than a full limit
  EXPECT_EQ(rate.remaining(at(0s), 600), 600u);
  EXPECT_TRUE(Gcra::fits(600, 600));
  EXPECT_FALSE(Gcra::fits(600, 601));
}

// Over any minute at most two limits, whatever is asked.
TEST(Gcra, LetsAtMostTwoLimitsThroughInAMinute) {
  Gcra rate;
  std::vector<std::pair<Nanos, std::uint64_t>> taken;
  Nanos now = 0s;
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    const std::uint64_t bits = draw(1, step, 0);
    now += std::chrono::milliseconds(below(bits, 400));
    const std::uint64_t n = 1 + below(mix64(bits), 30);
    if (rate.wait(at(now), 300, n) > 0s) continue;
    rate.take(at(now), 300, n);
    taken.emplace_back(now, n);
    std::uint64_t sum = 0;
    for (auto it = taken.rbegin(); it != taken.rend() && it->first > now - 1min; ++it) sum += it->second;
    ASSERT_LE(sum, 600u);
  }
  std::uint64_t all = 0;
  for (const auto& [when, n] : taken) all += n;
  EXPECT_NEAR(static_cast<double>(all), 300.0 * std::chrono::duration<double>(now).count() / 60, 400);
}

TEST(Tenant, AsksAllLimitsBeforeItTakesOfAny) {
  Tenant tenant;
  tenant.configure({.weight = 1, .limits = {.requests_per_minute = 3, .tokens_per_minute = 1000, .concurrency = 2}});
  EXPECT_EQ(tenant.over(at(0s), 1001)->code, Code::request_too_large_for_limit);
  EXPECT_EQ(tenant.over(at(0s), 1001)->limit, 1000);
  ASSERT_FALSE(tenant.over(at(0s), 600));
  tenant.take(at(0s), 600);
  const auto tokens = tenant.over(at(0s), 500);
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->code, Code::tokens_per_minute);
  EXPECT_EQ(tokens->retry_after, 6s);  // 100 of 1000 a minute
  EXPECT_EQ(tokens->limit, 400);
  tenant.take(at(0s), 100);
  EXPECT_EQ(tenant.over(at(0s), 1)->code, Code::concurrency);
  tenant.ended(at(0s), -50);
  EXPECT_EQ(tenant.open(), 1u);
  EXPECT_EQ(tenant.rates(at(0s)).tokens.remaining, 350u);
  tenant.take(at(0s), 1);
  tenant.ended(at(0s), 0);
  const auto requests = tenant.over(at(0s), 1);
  ASSERT_TRUE(requests);
  EXPECT_EQ(requests->code, Code::requests_per_minute);
  EXPECT_EQ(requests->retry_after, 20s);
  EXPECT_EQ(tenant.rates(at(0s)).requests.remaining, 0u);
  EXPECT_EQ(tenant.rates(at(0s)).requests.full_in, 1min);
}

Plan limited_plan(TenantLimits limits) {
  PlanOf of;
  of.pool(1, 2).route({0});
  of.plan.tenants.push_back({.id = TenantId{1}, .weight = 1, .limits = limits});
  return of.plan;
}

Arrival of_tenant(std::uint32_t tenant, std::uint32_t prompt = 10, std::uint32_t output = 10) {
  return {.tenant = TenantId{tenant}, .prompt_tokens = prompt, .max_output_tokens = output};
}

TEST(TenantLimits, RefuseAtTheDoorAndOthersDoNotNotice) {
  History history(limited_plan({.requests_per_minute = 2}));
  const RequestId first = history.arrive(0s, of_tenant(1)), second = history.arrive(0s, of_tenant(1));
  const RequestId third = history.arrive(0s, of_tenant(1));
  ASSERT_TRUE(history.of(third).answer);
  EXPECT_EQ(history.of(third).answer->code, Code::requests_per_minute);
  EXPECT_GE(history.of(third).answer->retry_after, 30s);
  EXPECT_LE(history.of(third).answer->retry_after, 45s);
  EXPECT_TRUE(history.of(third).answer->repeat_ok);
  const RequestId other = history.arrive(0s, of_tenant(0));
  EXPECT_FALSE(history.of(other).answer);
  for (const RequestId id : {first, second, other}) history.end(1s, id, ok());
  const RequestId later = history.arrive(31s, of_tenant(1));
  EXPECT_FALSE(history.of(later).answer);
  history.end(32s, later, ok());
  history.expect_idle();
}

TEST(TenantLimits, TokensAreEstimatedThenCorrected) {
  History history(limited_plan({.tokens_per_minute = 1000}));
  const RequestId first = history.arrive(0s, of_tenant(1, 400, 400));
  EXPECT_EQ(history.of(history.arrive(0s, of_tenant(1, 100, 110))).answer->code, Code::tokens_per_minute);
  history.end(0s, first, {.input_tokens = 400, .output_tokens = 20});
  const RequestId second = history.arrive(0s, of_tenant(1, 100, 110));
  EXPECT_FALSE(history.of(second).answer);
  EXPECT_EQ(history.of(history.arrive(0s, of_tenant(1, 900, 101))).answer->code, Code::request_too_large_for_limit);
  history.end(1s, second, ok());
  history.expect_idle();
}

TEST(TenantLimits, ConcurrencyIsGivenBackHoweverARequestEnds) {
  History history(limited_plan({.concurrency = 3}));
  const RequestId runs = history.arrive(0s, of_tenant(1)), also = history.arrive(0s, of_tenant(1));
  const RequestId waits = history.arrive(0s, of_tenant(1));
  const RequestId refused = history.arrive(0s, of_tenant(1));
  EXPECT_EQ(history.of(refused).answer->code, Code::concurrency);
  EXPECT_EQ(history.of(refused).answer->value, 3);
  history.leave(1s, waits);
  const RequestId again = history.arrive(1s, of_tenant(1));
  EXPECT_FALSE(history.of(again).answer);
  history.end(2s, runs, failed(End::stalled));  // fails over, or is answered
  history.leave(3s, again);
  history.leave(3s, runs);
  history.leave(3s, also);
  history.end(3s, also, failed(End::cancelled));
  EXPECT_FALSE(history.of(history.arrive(4s, of_tenant(1))).answer);
}

TEST(TenantLimits, ATenantsClassBoundsWhatItsCallersMayAskFor) {
  PlanOf of;
  of.pool(1, 1).route({0});
  of.plan.tenants.push_back({.id = TenantId{1}, .weight = 1, .klass = Class::batch});
  History history(of.plan);
  const RequestId runs = history.arrive(0s);
  const RequestId batch = history.arrive(0s, of_tenant(1)), interactive = history.arrive(0s, of_tenant(0));
  history.end(1s, runs, ok());
  EXPECT_TRUE(history.of(interactive).out);  // it came later
  EXPECT_FALSE(history.of(batch).out);
  history.end(2s, interactive, ok());
  history.end(3s, batch, ok());
  history.expect_idle();
}

}  // namespace
}  // namespace headgate::policies
