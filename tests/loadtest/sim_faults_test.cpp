// Faults at virtual times: their text, and what becomes of requests that are on their way then.
#include "loadtest/sim/faults.hpp"

#include <gtest/gtest.h>

#include "fleet.hpp"

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

RunResult play(Fleet fleet, const std::vector<std::string>& faults, const std::vector<Planned>& plan) {
  std::string problem;
  fleet.settings.faults = parse_faults(faults, *fleet.settings.catalog, plan.back().at, problem);
  EXPECT_EQ(problem, "");
  return simulate(fleet.settings, plan);
}

TEST(SimFaults, AreReadWithTheirTimesAndServers) {
  const Fleet fleet(3, 4);
  std::string problem;
  const auto faults =
      parse_faults({"at=1/2;backend=p/b2;do=slow;factor=3;for=5s", "at=2s;backend=p/*;do=storm;status=503"},
                   *fleet.settings.catalog, 60s, problem);
  EXPECT_EQ(problem, "");
  ASSERT_EQ(faults.size(), 5u);
  for (std::size_t n = 0; n < 3; ++n) {
    EXPECT_EQ(faults[n].at, 2s);
    EXPECT_EQ(policies::index(faults[n].endpoint), n);
    EXPECT_EQ(faults[n].state.status, 503);
    EXPECT_EQ(faults[n].state.retry_after, 1s);
  }
  EXPECT_EQ(faults[3].at, 30s);
  EXPECT_EQ(policies::index(faults[3].endpoint), 1u);
  EXPECT_EQ(faults[3].state.slowness, 3);
  EXPECT_EQ(faults[4].at, 35s);
  EXPECT_EQ(faults[4].state.slowness, 1);
}

TEST(SimFaults, FlapIsDownAndUpInTurnAndUpInTheEnd) {
  const Fleet fleet(1, 4);
  std::string problem;
  const auto faults =
      parse_faults({"at=1s;backend=p/b1;do=flap;every=2s;for=5s"}, *fleet.settings.catalog, 60s, problem);
  std::vector<std::pair<Nanos, bool>> down;
  for (const SimFault& fault : faults) down.emplace_back(fault.at, fault.state.down);
  EXPECT_EQ(down, (std::vector<std::pair<Nanos, bool>>{{1s, true}, {3s, false}, {5s, true}, {6s, false}}));
}

TEST(SimFaults, SayWhatIsWrong) {
  struct Row {
    const char *text, *problem;
  };
  const Row rows[] = {
      {"at=1s;backend=p/b1", "at=, backend= and do= are needed, as in at=60s;backend=POOL/NAME;do=kill;for=20s"},
      {"at=soon;backend=p/b1;do=kill",
       "\"at=soon\" must be a duration such as 60s, or a share of the arrivals' span such as 1/3"},
      {"at=1s;backend=p/b9;do=kill", "there is no backend \"p/b9\"; did you mean \"p/b1\"?"},
      {"at=1s;backend=p/b1;do=kil", "\"kil\" is nothing that a fault can do; did you mean \"kill\"?"},
      {"at=1s;backend=p/b1;do=flap", "flap needs for=DURATION"},
      {"at=1s;backend=p/b1;do=slow;facto=2", "\"facto=2\" is no part of a fault; did you mean \"factor\"?"},
      {"at=1s;backend=p/b1;do=slow;factor=0", "\"factor=0\" must be a number over 0, at most 1000"},
      {"at=1s;backend=p/b1;do=storm;status=200", "\"status=200\" must be an error status, 400 to 599"},
      {"at=1s;backend=p/b1;do=storm;status=nan", "\"status=nan\" must be an error status, 400 to 599"},
      {"at=1s;backend=p/b1;do=storm;status=429.7", "\"status=429.7\" must be an error status, 400 to 599"},
      {"at=1s;backend=p/b1;do=slow;factor=inf", "\"factor=inf\" must be a number over 0, at most 1000"},
      {"at=nan;backend=p/b1;do=kill",
       "\"at=nan\" must be a duration such as 60s, or a share of the arrivals' span such as 1/3"},
      {"at=0s;at=1s;backend=p/b1;do=kill", "\"at=1s\" is given twice"},
      {"at=1s;backend=p/b1;do=kill;factor=2", "factor= is only for do=slow"},
      {"at=1s;backend=p/b1;do=slow;every=2s", "every= is only for do=flap"},
      {"at=1s;backend=p/b1;do=recover;for=2s", "for= is not for do=recover"},
      {"at=1s;backend=p/b1;do=kill;for=0s", "\"for=0s\" must be a duration such as 20s"}};
  const Fleet fleet(1, 4);
  for (const Row& row : rows) {
    std::string problem;
    EXPECT_TRUE(parse_faults({row.text}, *fleet.settings.catalog, 60s, problem).empty());
    EXPECT_EQ(problem, std::string("fault \"") + row.text + "\": " + row.problem);
  }
}

// The longest duration there is: what lies so far away does not happen.
TEST(SimFaults, ThatAreNeverReachedChangeNothing) {
  const std::vector<Planned> plan{{1ms, 100, 3, true}, {2s, 100, 3, true}};
  for (const char* what : {"kill", "storm", "flap;every=1h;for=10h", "kill;for=2562047h"}) {
    const RunResult result = play(Fleet(1, 4), {std::string("at=2562047h;backend=p/b1;do=") + what}, plan);
    EXPECT_EQ(result.records[0].outcome, Outcome::ok) << what;
    EXPECT_EQ(result.records[1].outcome, Outcome::ok) << what;
  }
  const RunResult for_ever = play(Fleet(1, 4), {"at=1s;backend=p/b1;do=kill;for=2562047h"}, plan);
  EXPECT_EQ(for_ever.records[0].outcome, Outcome::ok);
  EXPECT_EQ(for_ever.records[1].outcome, Outcome::failed_before_first_token);
}

// Thirty years between two requests: no probe of them is worth an event, but the dead server is known by then.
TEST(SimFaults, AQuietTimeCostsNothing) {
  for (const char* fault : {"at=0s;backend=p/b1;do=kill;for=1s", "at=0s;backend=p/b1;do=kill"}) {
    Fleet fleet(2, 4);
    std::size_t events = 0;
    fleet.settings.watch = [&](Time, const policies::Dispatcher&, const policies::Orders&) { ++events; };
    const RunResult result =
        play(fleet, {fault}, {{1ms, 100, 3, true}, {Nanos(std::chrono::hours(262'800)), 100, 3, true}});
    EXPECT_EQ(result.records[1].outcome, Outcome::ok);
    EXPECT_EQ(result.records[1].attempts, 1u);
    EXPECT_LT(events, 300u);
  }
}

// The first token comes at 22.5 ms, then one each 20 ms: see TakesTheTimeThatEngineAndNetworkTake.
TEST(SimFaults, AKillBreaksStreamsAndRefusesConnections) {
  const RunResult result =
      play(Fleet(2, 4), {"at=1s;backend=p/*;do=kill;for=1s"},
           {{0ms, 100, 200, true}, {0ms, 100, 200, false}, {1500ms, 100, 3, true}, {9s, 100, 3, true}});
  EXPECT_EQ(result.records[0].outcome, Outcome::cut);
  EXPECT_EQ(result.records[0].ended, 1s + 250us);
  EXPECT_EQ(result.records[0].attempts, 1u);
  EXPECT_EQ(result.names[result.records[0].reason], "stream_cut");
  EXPECT_EQ(result.records[1].outcome, Outcome::failed_before_first_token)
      << "a unary answer is nothing until it is whole";
  EXPECT_EQ(result.records[2].outcome, Outcome::failed_before_first_token);
  EXPECT_EQ(result.records[2].attempts, 3u) << "both were tried, and one again after a pause";
  EXPECT_EQ(result.records[3].outcome, Outcome::ok);
}

TEST(SimFaults, AnotherServerTakesOverWhatHasNotBegun) {
  std::vector<Planned> plan;
  for (int n = 0; n < 400; ++n) plan.push_back({n * 50ms, 100, 20, true});
  const RunResult result = play(Fleet(2, 8), {"at=5s;backend=p/b1;do=kill;for=10s"}, plan);
  int cut = 0, on_the_dead = 0, back = 0;
  for (const Record& record : result.records) {
    const bool on_b1 = result.names[record.backend] == "p/b1";
    if (record.outcome == Outcome::cut) {
      ++cut;
      EXPECT_TRUE(on_b1);
      EXPECT_EQ(record.ended, 5s + 250us);
      continue;
    }
    EXPECT_EQ(record.outcome, Outcome::ok);
    if (on_b1 && record.intended > 5s && record.intended < 15s) ++on_the_dead;
    if (on_b1 && record.intended > 18s) ++back;
  }
  EXPECT_GT(cut, 0);
  EXPECT_EQ(on_the_dead, 0);
  EXPECT_GT(back, 0) << "it is used again";
}

TEST(SimFaults, AStallAddsItsLengthAndNothingElse) {
  const RunResult result =
      play(Fleet(1, 4), {"at=100ms;backend=p/b1;do=stall;for=1s"}, {{0ms, 100, 50, true}, {500ms, 100, 2, true}});
  const Record& under_way = result.records[0];
  EXPECT_EQ(under_way.outcome, Outcome::ok);
  EXPECT_EQ(under_way.ttft(), 22500us);
  EXPECT_EQ(under_way.gap_max, 20ms + 1s);
  EXPECT_EQ(result.records[1].outcome, Outcome::ok);
  EXPECT_GT(result.records[1].ttft(), 600ms) << "it came meanwhile and waited";
  EXPECT_LT(result.records[1].ttft(), 660ms);
}

TEST(SimFaults, AnEndlessStallIsNoticedByItsSilence) {
  const RunResult result = play(Fleet(1, 4), {"at=100ms;backend=p/b1;do=stall"}, {{0ms, 100, 50, true}});
  const Fleet plain(1, 4);
  const auto& timeouts = plain.settings.catalog->options.routes.at("chat").timeouts;
  EXPECT_EQ(result.records[0].outcome, Outcome::cut);
  // The last token before it was the fourth, at 82.5 ms.
  EXPECT_EQ(result.records[0].ended, 82500us + timeouts.idle);
}

TEST(SimFaults, SlowServersTakeLongerStepsAndAStormIsGoneAround) {
  const RunResult slow = play(Fleet(1, 4), {"at=0s;backend=p/b1;do=slow;factor=2"}, {{1ms, 100, 3, true}});
  EXPECT_EQ(slow.records[0].ttft(), 44500us);
  EXPECT_EQ(slow.records[0].tpot(), 40ms);
  std::vector<Planned> plan;
  for (int n = 0; n < 40; ++n) plan.push_back({1s + n * 50ms, 100, 3, true});
  const RunResult storm = play(Fleet(2, 8), {"at=0s;backend=p/b2;do=storm;retry-after=2s"}, plan);
  int twice = 0;
  for (const Record& record : storm.records) {
    EXPECT_EQ(record.outcome, Outcome::ok);
    EXPECT_EQ(storm.names[record.backend], "p/b1");
    twice += record.attempts == 2 ? 1 : 0;
  }
  EXPECT_GE(twice, 1);
  EXPECT_LE(twice, 3) << "it cools down for as long as it advised";
}

}  // namespace
}  // namespace headgate::loadtest
