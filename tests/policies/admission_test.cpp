#include "policies/admission.hpp"

#include <gtest/gtest.h>

#include "policies/moment.hpp"

namespace headgate::policies {
namespace {

TEST(Rate, SettlesAtTheRateOfEventsAndDecays) {
  Rate rate{2s};
  Nanos now = 0s;
  for (int i = 0; i < 400; ++i, now += 50ms) rate.event(at(now));
  EXPECT_NEAR(rate.at(at(now)), 20, 0.5);
  EXPECT_NEAR(rate.at(at(now + 2s)), 20 / 2.718, 0.3);
  EXPECT_EQ(rate.events(), 400u);
}

TEST(WindowQuantile, IsTheNearestRankOfTheLastSixtyFour) {
  WindowQuantile q90{0.9};
  EXPECT_EQ(q90.value(), Nanos{0});
  q90.add(5ms);
  EXPECT_EQ(q90.value(), 5ms);
  for (int i = 1; i <= 100; ++i) q90.add(Nanos{i});
  // 37..100 are left; rank 57 of 64.
  EXPECT_EQ(q90.value(), Nanos{94});
}

TEST(Forecast, IsUnknownUnderTwentyReleases) {
  Forecast forecast;
  for (int i = 0; i < 19; ++i) forecast.released(at(i * 100ms), 1s);
  EXPECT_FALSE(forecast.wait(at(2s), {.ahead = 5}, 10));
  forecast.released(at(1900ms), 1s);
  EXPECT_TRUE(forecast.wait(at(2s), {.ahead = 5}, 10));
}

TEST(Forecast, WaitsForThoseAheadAtTheDrainRate) {
  Forecast forecast;
  Nanos now = 0s;
  for (int i = 0; i < 400; ++i, now += 50ms) forecast.released(at(now), 100ms);
  const Nanos wait = *forecast.wait(at(now), {.ahead = 39}, 2);
  EXPECT_NEAR(std::chrono::duration<double>(wait).count(), 2.0, 0.1);  // 40 at 20 per second
}

TEST(Forecast, AClassWaitsForItsShareOrForWhatTheOthersLeave) {
  Forecast forecast;
  Nanos now = 0s;
  for (int i = 0; i < 400; ++i, now += 50ms) {  // 20 per second, three of four starts are another class's
    forecast.released(at(now), 100ms);
    forecast.started(at(now), i % 4 == 0 ? Class::batch : Class::interactive);
  }
  const auto wait_s = [&](Class klass, double share) {
    const Forecast::Place place{.ahead = 19, .klass = klass, .share = share};
    return std::chrono::duration<double>(*forecast.wait(at(now), place, 2)).count();
  };
  EXPECT_NEAR(wait_s(Class::batch, 0.1), 4.0, 0.4);         // 20 at the 5 per second that are left
  EXPECT_NEAR(wait_s(Class::batch, 0.5), 2.0, 0.1);         // 20 at the 10 that are its own
  EXPECT_NEAR(wait_s(Class::interactive, 0.1), 1.33, 0.1);  // 20 at 15
}

TEST(Forecast, AQuietPoolIsNotASlowOne) {
  Forecast forecast;
  for (int i = 0; i < 30; ++i) forecast.released(at(i * 10s), 1s);
  // Now 64 are in flight for about a second each, whatever came out lately.
  const Nanos wait = *forecast.wait(at(300s), {.ahead = 31}, 64);
  EXPECT_NEAR(std::chrono::duration<double>(wait).count(), 0.5, 0.01);
}

TEST(Forecast, AStoppedPoolNeverDrains) {
  Forecast forecast;
  for (int i = 0; i < 30; ++i) forecast.released(at(i * 10ms), 10ms);
  EXPECT_GT(*forecast.wait(at(1000s), {.ahead = 0}, 0), 1000s);
}

TEST(Forecast, KeepsStreamsAndUnaryAnswersApart) {
  Forecast forecast;
  for (int i = 0; i < 19; ++i) forecast.first_content(200ms);
  EXPECT_EQ(forecast.ttft_q90(), Nanos{0});
  forecast.first_content(200ms);
  for (int i = 0; i < 20; ++i) forecast.completed(3s);
  EXPECT_EQ(forecast.ttft_q90(), 200ms);
  EXPECT_EQ(forecast.ttft_q50(), 200ms);
  EXPECT_EQ(forecast.e2e_q90(), 3s);
}

TEST(Admission, NeedsWaitAndServiceInSevenTenthsOfWhatIsLeft) {
  struct Row {
    std::optional<Nanos> queue;
    Nanos service, left, wait_max;
    bool admitted;
  };
  const Row rows[] = {
      {std::nullopt, 0s, 1ms, 30s, true},  // nothing known: up to the bounds of the queue
      {500ms, 200ms, 1s, 30s, true},      {500ms, 201ms, 1s, 30s, false}, {0s, 0s, 0s, 30s, true},
      {31s, 0s, 300s, 30s, false},  // longer than anybody may wait there
      {29s, 10s, 300s, 30s, true},
  };
  for (const Row& row : rows) {
    const Prospect content{row.queue, row.service, row.left};
    EXPECT_EQ(admit(content, {row.queue, 0s, 300s}, row.wait_max).admitted, row.admitted);
  }
  const Verdict late = admit({1s, 500ms, 1s}, {1s, 0s, 300s}, 30s);
  EXPECT_EQ(late.predicted, 1500ms);
  EXPECT_EQ(late.limit, 1s);
  EXPECT_EQ(late.excess, 800ms);
}

}  // namespace
}  // namespace headgate::policies
