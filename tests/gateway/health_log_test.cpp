#include "gateway/health_log.hpp"

#include <gtest/gtest.h>

#include "gateway/catalogs.hpp"

namespace headgate::gateway {
namespace {

using namespace std::chrono_literals;
using policies::HealthState;
using Line = HealthLog::Line;

struct Watched {
  Watched() {
    catalog = config::make_catalog(two_pools(), ids, 1);
    names.learn(*catalog);
    for (const auto& planned : catalog->plan.endpoints) {
      snapshot.endpoints.emplace_back();
      snapshot.endpoints.back().id = planned.id;
      snapshot.endpoints.back().planned = true;
    }
  }
  std::vector<Line> after(HealthState health, std::uint64_t changes, Nanos out_for = 0s) {
    policies::EndpointState& first = snapshot.endpoints.front();
    first.health = health;
    first.health_changes_total = changes;
    first.out_until = now + out_for;
    return log.compare(now, snapshot, names);
  }
  std::string says(const std::string& what) const {
    return "backend " + std::string(names.endpoint(snapshot.endpoints.front().id)) + " " + what;
  }

  config::IdBook ids;
  std::shared_ptr<const config::Catalog> catalog;
  NameBook names;
  policies::Snapshot snapshot;
  HealthLog log;
  Time now = Time{} + 1h;
};

TEST(HealthOfBackends, IsLoggedWhenItChangesAndOnlyThen) {
  Watched w;
  using Lines = std::vector<Line>;
  EXPECT_EQ(w.after(HealthState::up, 0), Lines{});
  EXPECT_EQ(w.after(HealthState::down, 1), (Lines{{true, w.says("is out until its probes succeed")}}));
  EXPECT_EQ(w.after(HealthState::down, 1), Lines{});
  EXPECT_EQ(w.after(HealthState::up, 2), (Lines{{false, w.says("is back")}}));
  EXPECT_EQ(w.after(HealthState::up, 2), Lines{});
  EXPECT_EQ(w.after(HealthState::ejected, 3, 4500ms),
            (Lines{{true, w.says("is out for another 5 s after failures in a row")}}));
  EXPECT_EQ(w.after(HealthState::half_open, 3), Lines{}) << "still out";
  EXPECT_EQ(w.after(HealthState::up, 4), (Lines{{false, w.says("is back")}}));
  EXPECT_EQ(w.after(HealthState::cooling, 5, 2s), (Lines{{true, w.says("cools down for another 2 s, as it asked")}}));
  EXPECT_EQ(w.after(HealthState::cooling, 7, 9s), (Lines{{true, w.says("cools down for another 9 s, as it asked")}}))
      << "back and out again between two looks";
  EXPECT_EQ(w.after(HealthState::up, 10), (Lines{{false, w.says("is back")}}));
  EXPECT_EQ(w.after(HealthState::up, 12), (Lines{{true, w.says("was out for a moment and is back")}}));
}

TEST(HealthOfBackends, OfOneThatLeftTheConfigurationIsNobodysBusiness) {
  Watched w;
  w.snapshot.endpoints.front().planned = false;
  EXPECT_TRUE(w.after(HealthState::down, 1).empty());
}

}  // namespace
}  // namespace headgate::gateway
