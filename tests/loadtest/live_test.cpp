#include "loadtest/live.hpp"

#include <gtest/gtest.h>

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

Record answered(Nanos ended, Nanos ttft) {
  Record record;
  record.outcome = Outcome::ok;
  record.intended = ended - 1s;
  record.first = record.intended + ttft;
  record.content_events = 11;
  record.last = *record.first + 200ms;
  record.ended = ended;
  return record;
}

TEST(Tally, RecentForgetsWhatIsOlderThanTenSeconds) {
  Names names;
  Tally tally{Slo{}};
  for (int second = 1; second <= 30; ++second) {
    tally.ended(answered(1s * second, 100ms), names, 1s * second);
  }
  EXPECT_EQ(tally.whole().ended, 30u);
  EXPECT_EQ(tally.recent().ended, 10u);
  tally.advance(36s);
  EXPECT_EQ(tally.recent().ended, 4u);
  tally.advance(100s);
  EXPECT_EQ(tally.recent().ended, 0u);
  EXPECT_EQ(tally.recent().ttft.count(), 0u);
  EXPECT_EQ(tally.whole().ttft.count(), 30u);
}

TEST(AdminState, ReadsWhatItKnowsAndToleratesTheRest) {
  const AdminState state = parse_admin_state(
      R"({"version":3,"backends":[{"name":"b1","pool":"small","endpoint":"x","health":"up","in_flight":3,"max_in_flight":16},
          {"name":"b2","pool":"small","in_flight":"many"},7],"pools":[{"name":"small","queued":2}],"extra":[{"name":1}]})");
  ASSERT_EQ(state.backends.size(), 2u);
  EXPECT_EQ(state.backends[0].in_flight, 3u);
  EXPECT_EQ(state.backends[0].in_flight_max, 16u);
  EXPECT_EQ(state.backends[1].in_flight, 0u);
  ASSERT_EQ(state.pools.size(), 1u);
  EXPECT_EQ(state.pools[0].queued, 2u);
  for (const char* body : {"", "[]", "{", "{\"backends\":3}"}) EXPECT_TRUE(parse_admin_state(body).backends.empty());
}

TEST(LiveScreen, ShowsRequestsLatenciesBackendsRefusalsAndEvents) {
  Names names;
  std::string problem;
  Tally tally{*parse_slo("ttft=1s,tpot=50ms", problem)};
  tally.ended(answered(2s, 100ms), names, 2s);
  Record refused;
  refused.outcome = Outcome::refused;
  refused.reason = names.number("queue_full");
  tally.ended(refused, names, 2s);
  LiveView view;
  view.title = "demo";
  view.now = 3s;
  view.span = 45s;
  view.planned = 100;
  view.sent = 7;
  view.active = 5;
  view.happened = {" 15.0 s  killed small/b1"};
  AdminState state;
  state.pools = {{"small", 2}};
  state.backends = {{"b1", "small", "down", 8, 16}};
  const std::string plain = live_screen(view, tally, state, false);
  for (const char* part :
       {"demo", "sent 7 of 100", "in flight 5", "50.0 % within ttft=1s,tpot=50ms", "queue_full 1", "TTFT", "100 ms",
        "20.0 ms", "queued 2", "[##########..........] 8 of 16", "down", "killed small/b1"}) {
    EXPECT_NE(plain.find(part), plain.npos) << part << " in\n" << plain;
  }
  EXPECT_EQ(plain.find('\x1b'), plain.npos);
  EXPECT_NE(live_screen(view, tally, state, true).find("\x1b[31m"), std::string::npos);
}

}  // namespace
}  // namespace headgate::loadtest
