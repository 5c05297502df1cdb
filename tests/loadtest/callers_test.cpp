// Callers that send again as the official SDKs do, and callers that leave.
#include "loadtest/sim/callers.hpp"

#include <gtest/gtest.h>

#include "fleet.hpp"

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;
using policies::Answer;
using policies::Code;

TEST(Callers, SendAgainWhatTheyAreToldToOrByTheStatus) {
  EXPECT_TRUE(would_retry({.code = Code::queue_full, .retry_after = 2s, .repeat_ok = true}, 0));
  EXPECT_FALSE(would_retry({.code = Code::queue_full, .retry_after = 2s, .repeat_ok = false}, 0));
  EXPECT_FALSE(would_retry({.code = Code::queue_full, .retry_after = 61s, .repeat_ok = true}, 0));
  EXPECT_FALSE(would_retry({.code = Code::deadline_exceeded, .repeat_ok = true}, 0));
  EXPECT_FALSE(would_retry({.code = Code::upstream_failed, .repeat_ok = true}, 0));
  for (const int status : {408, 409, 429, 500, 503, 529})
    EXPECT_TRUE(would_retry({.code = Code::as_received}, static_cast<std::uint16_t>(status))) << status;
  for (const int status : {400, 401, 404, 422})
    EXPECT_FALSE(would_retry({.code = Code::as_received}, static_cast<std::uint16_t>(status))) << status;
}

TEST(Callers, PauseAsAdvisedOrLongerEachTime) {
  EXPECT_EQ(pause_before_retry(0, 3s, 0.5), 3s);
  EXPECT_EQ(pause_before_retry(0, 1234567us, 0.5), 1235ms);
  EXPECT_EQ(pause_before_retry(0, 61s, 0), 500ms) << "too long to be followed";
  EXPECT_EQ(pause_before_retry(0, 0s, 0), 500ms);
  EXPECT_EQ(pause_before_retry(1, 0s, 1), 750ms);
  EXPECT_EQ(pause_before_retry(4, 0s, 0), 8s);
  EXPECT_EQ(pause_before_retry(9, 0s, 0), 8s);
}

// One server down for 3 s: the first try fails at once, what the gateway advises brings the caller back until it is up.
TEST(Callers, AreServedByAServerThatComesBackInTime) {
  Fleet fleet(1, 4);
  std::string problem;
  fleet.settings.faults = parse_faults({"at=0s;backend=p/b1;do=storm;status=503;retry-after=2s;for=3s"},
                                       *fleet.settings.catalog, 60s, problem);
  ASSERT_EQ(problem, "");
  const std::vector<Planned> plan{{1ms, 100, 3, true}};
  const RunResult once = simulate(fleet.settings, plan);
  EXPECT_EQ(once.records[0].outcome, Outcome::failed_before_first_token);
  EXPECT_EQ(once.records[0].sends, 1u);
  fleet.settings.callers.retries = 2;
  const RunResult again = simulate(fleet.settings, plan);
  EXPECT_EQ(again.records[0].outcome, Outcome::ok);
  EXPECT_GE(again.records[0].sends, 2u);
  EXPECT_GE(again.records[0].ttft(), 2s) << "from the first send";
}

TEST(Callers, ARefusedOneComesBackOnceAsARepeat) {
  Fleet fleet(1, 1, 1);  // one in service, one in the queue
  std::vector<Planned> plan{{0ms, 100, 20, true}, {1ms, 100, 1, true}, {2ms, 100, 1, true}};
  EXPECT_EQ(simulate(fleet.settings, plan).records[2].outcome, Outcome::refused);
  fleet.settings.callers.retries = 2;
  const Record back = simulate(fleet.settings, plan).records[2];
  EXPECT_EQ(back.outcome, Outcome::ok);
  EXPECT_EQ(back.sends, 2u);
  plan[0].output = 2000;
  const Record again = simulate(fleet.settings, plan).records[2];
  EXPECT_EQ(again.outcome, Outcome::refused);
  EXPECT_EQ(again.sends, 2u) << "a repeat that is refused is told not to come again";
}

TEST(Callers, LeaveTheQueueTheServerOrTheirPauseWhenPatienceEnds) {
  Fleet fleet(1, 1, 1);
  fleet.settings.callers = {.retries = 2, .patience = 500ms};
  const RunResult result = simulate(
      fleet.settings, {{0ms, 100, 100, true}, {1ms, 100, 100, false}, {10s, 100, 200, false}, {11s, 100, 3, true}});
  EXPECT_EQ(result.records[0].outcome, Outcome::ok) << "it had begun";
  EXPECT_EQ(result.records[1].outcome, Outcome::left) << "in the queue";
  EXPECT_EQ(result.records[1].ended, 501ms);
  EXPECT_EQ(result.records[2].outcome, Outcome::left) << "in service: a unary answer shows nothing before its end";
  EXPECT_EQ(result.records[3].outcome, Outcome::ok) << "its slot came back";
  EXPECT_LT(result.records[3].ttft(), 100ms);
}

TEST(Callers, OfEndlessPatienceStay) {
  Fleet fleet(1, 1);
  fleet.settings.callers.patience = Nanos::max() - 1ns;
  const RunResult result = simulate(fleet.settings, {{0ms, 100, 100, true}, {1ms, 100, 100, false}});
  EXPECT_EQ(result.records[0].outcome, Outcome::ok);
  EXPECT_EQ(result.records[1].outcome, Outcome::ok);
}

}  // namespace
}  // namespace headgate::loadtest
