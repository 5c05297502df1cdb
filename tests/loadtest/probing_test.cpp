// Demo configuration: every 5 s, down after 3 misses, up after 2 good ones; so settled after 13 answers alike.
#include "loadtest/sim/probing.hpp"

#include <gtest/gtest.h>

#include "fleet.hpp"

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

constexpr Time at(Nanos offset) { return Time{} + offset; }

TEST(Probing, GoesOnAboutAnIntervalApart) {
  const Fleet fleet(2, 4);
  Probing probing(*fleet.settings.catalog, 2);
  Time now = at(1s), next = probing.changed(1, now);
  for (int n = 0; n < 100; ++n) {
    EXPECT_GE(next - now, 4s);
    EXPECT_LE(next - now, 6s);
    now = next;
    next = probing.answered(1, now, false, now);
  }
}

TEST(Probing, AChangeSetsOneOnlyWhereNoneIsOnItsWay) {
  const Fleet fleet(1, 4);
  Probing probing(*fleet.settings.catalog, 1);
  Time now = probing.changed(0, at(1s));
  EXPECT_EQ(probing.changed(0, at(1s)), never);
  const std::uint32_t first = probing.serial(0);
  while (now < at(50h)) now = probing.answered(0, now, true, at(100h));
  EXPECT_GT(now, at(99h)) << "it sleeps";
  EXPECT_LE(now, at(100h) - 4s);
  EXPECT_NE(probing.serial(0), first);
  const Time awake = probing.changed(0, at(1h));
  EXPECT_LE(awake, at(1h) + 6s);
}

TEST(Probing, SleepsOnlyWhenTheAnswersHaveSettled) {
  const Fleet fleet(1, 4);
  Probing probing(*fleet.settings.catalog, 1);
  Time now = probing.changed(0, at(0s));
  for (int n = 1; n < 13; ++n) {
    const Time next = probing.answered(0, now, false, at(100h));
    EXPECT_LE(next - now, 6s) << n;
    now = next;
  }
  EXPECT_GT(probing.answered(0, now, false, at(100h)), at(99h));
}

TEST(Probing, AnEndpointThatIsNotProbedHasNone) {
  const Fleet fleet(1, 4);
  Probing probing(*fleet.settings.catalog, 3);
  EXPECT_EQ(probing.changed(2, at(0s)), never);
}

}  // namespace
}  // namespace headgate::loadtest
