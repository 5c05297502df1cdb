#include "loadtest/live.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

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
  Tally tally{{TrafficClass{}}};
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

struct LiveScreen : testing::Test {
  LiveScreen() {
    tally.ended(answered(2s, 100ms), names, 2s);
    view.title = "demo";
    view.now = 3s;
    view.span = 45s;
    view.planned = 100;
    view.sent = 7;
    view.active = 5;
    view.happened = {" 15.0 s  killed small/b1", " 30.0 s  restarted small/b1"};
    state.pools = {{"small", 2}, {"large", 0}};
    state.backends = {{"b1", "small", "down", 8, 16},
                      {"b2", "small", "up", 16, 16},
                      {"b1", "large", "up", 3, 16},
                      {"b2", "large", "up", 4, 16}};
  }
  void refuse() {
    Record refused;
    refused.outcome = Outcome::refused;
    refused.reason = names.number("queue_full");
    tally.ended(refused, names, 2s);
  }
  std::string screen(int columns, int rows, bool colour = false) const {
    return live_screen(view, tally, state, colour, {columns, rows});
  }
  static void expect_in(const std::string& screen, std::vector<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(screen.find(part), screen.npos) << part << " in\n" << screen;
  }
  Names names;
  std::string problem;
  Tally tally{{{.name = "", .model = "chat", .slo = *parse_slo("ttft=1s,tpot=50ms", problem)}}};
  LiveView view;
  AdminState state;
};

TEST_F(LiveScreen, ShowsRequestsLatenciesBackendsRefusalsAndEvents) {
  refuse();
  const std::string plain = screen(100, 30);
  expect_in(plain, {"demo", "sent 7 of 100", "in flight 5", "50.0 % within ttft=1s,tpot=50ms", "queue_full 1", "TTFT",
                    "100 ms", "20.0 ms", "queued 2", "1 of 2 up", "24 of 32 in flight",
                    "[##########..........] 8 of 16 in flight", "down", "killed small/b1"});
  EXPECT_EQ(plain.find('\x1b'), plain.npos);
  EXPECT_NE(screen(100, 30, true).find("\x1b[31m"), std::string::npos);
}

TEST_F(LiveScreen, NeverTakesMoreThanTheTerminalHas) {
  view.title = std::string(300, 't');
  for (int n = 0; n < 40; ++n) state.backends.push_back({"b" + std::to_string(n), "large", "up", 1, 100'000});
  for (int columns : {1, 2, 20, 40, 59, 60, 79, 80, 81, 100, 200}) {
    for (int rows : {1, 2, 5, 10, 15, 24, 30, 60}) {
      const std::string drawn = screen(columns, rows);
      EXPECT_LE(std::ranges::count(drawn, '\n'), std::max(rows - 1, 1)) << columns << "x" << rows;
      std::istringstream lines(drawn);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LT(line.size(), static_cast<std::size_t>(columns)) << columns << "x" << rows << ": " << line;
      }
      EXPECT_LE(progress_bar(view, tally, columns).size(), static_cast<std::size_t>(columns));
    }
  }
}

TEST_F(LiveScreen, KeepsWhatMattersOnASmallTerminal) {
  const std::string small = screen(60, 15);
  expect_in(small, {"demo", ".....]", "sent 7 of 100", "ok 1", "failed before first token 0", "100.0 % within", "TTFT",
                    "whole run", "20.0 ms", "pool small", "1 of 2 up", "pool large", "killed small/b1", "restarted"});
  EXPECT_NE(small.find("down"), small.npos) << "of the backends the one that is ill:\n" << small;
  EXPECT_EQ(small.find("\n\n"), small.npos) << small;
  const std::string tiny = screen(60, 6);
  expect_in(tiny, {"sent 7 of 100", "failed before first token 0", "goodput"});
}

TEST(CutTo, CountsCharactersAndNoColourCodes) {
  EXPECT_EQ(cut_to("abcdef", 3), "abc");
  EXPECT_EQ(cut_to("ab", 3), "ab");
  EXPECT_EQ(cut_to("abc", 0), "");
  EXPECT_EQ(cut_to("\x1b[31mabc\x1b[0mdef", 2), "\x1b[31mab\x1b[0m");
  EXPECT_EQ(cut_to("\xc3\xa4\xe2\x82\xac"
                   "xyz",
                   2),
            "\xc3\xa4\xe2\x82\xac");
  EXPECT_EQ(cut_to("x\x1b", 5), "x\x1b");
}

}  // namespace
}  // namespace headgate::loadtest
