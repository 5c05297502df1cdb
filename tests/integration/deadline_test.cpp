// The caller's deadline: case RW-20. It is 1 s from arrival, stated in x-headgate-deadline-ms.
#include <gtest/gtest.h>

#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"

namespace headgate::support {
namespace {

const std::string within_a_second =
    chat_request(chat_body(false), "Authorization: Bearer GW1\r\nx-headgate-deadline-ms: 1000\r\n");

// (a) One slot, held for 3 s by A; B arrives 0.1 s after A. B is answered at once with 503 deadline_unmeetable, or 1.0
// +- 0.15 s after its own arrival with 504, and never reaches the upstream: one arrival after 5 s.
TEST(Deadline, RW20a_QueueingCounts) {
  ScriptedUpstream upstream(good_answer({.delay = 3s}));
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 1;
  GatewayProcess gateway(config);
  const MachineLag lag;
  RawClient a(gateway.port()), b(gateway.port());
  const Time start = now();
  a.send(chat_request(chat_body(false)));
  ASSERT_TRUE(upstream.await_arrivals(1));
  std::this_thread::sleep_until(start + 100ms);  // the moment is the stage
  const Reply reply = b.ask(within_a_second);
  EXPECT_EQ(plain_error_fault(reply), "");
  if (reply.status == 503) {
    EXPECT_EQ(error_code_of(reply), "deadline_unmeetable");
    EXPECT_LE(to_ms(reply.took()), to_ms(scaled(150ms) + lag.slack()));
  } else {
    EXPECT_EQ(reply.status, 504) << reply.raw;
    EXPECT_EQ(error_code_of(reply), "deadline_exceeded");
    EXPECT_GE(to_ms(reply.took()), 850);
    EXPECT_LE(to_ms(reply.took()), to_ms(1s + scaled(150ms) + lag.slack()));
  }
  EXPECT_EQ(a.read_reply().status, 200);
  std::this_thread::sleep_until(start + 5s);  // that nothing happens takes its time to see
  EXPECT_EQ(upstream.arrival_count(), 1u);
}

// Ten retries without a pause, no queue; a cooling upstream may be tried when there is no other.
nlohmann::json retrying(const ScriptedUpstream& upstream) {
  auto config = basic_config({&upstream});
  auto& retry = config["routes"]["m"]["retry"];
  retry["attempts_max"] = 11;
  retry["backoff"] = "0s";
  retry["backoff_max"] = "0s";
  config["pools"]["p"]["queue"]["requests_max"] = 0;
  config["pools"]["p"]["health"]["cooldown_last_backend"] = "try";
  return config;
}

// (b) The upstream answers 503 after 0.4 s each time: the caller has its answer by 1.15 s, after at most 3 arrivals
// (and at least 2, or no retry was seen).
TEST(Deadline, RW20b_RetryingCounts) {
  const std::string busy = plain_reply(503, R"({"error":{"message":"busy","type":"server_error","code":"busy"}})");
  ScriptedUpstream upstream(always(busy, 400ms));
  GatewayProcess gateway(retrying(upstream));
  const MachineLag lag;
  const Reply reply = ask_once(gateway.port(), within_a_second);
  EXPECT_TRUE(reply.status == 503 || reply.status == 504) << reply.raw;
  EXPECT_EQ(plain_error_fault(reply), "");
  EXPECT_LE(to_ms(reply.took()), to_ms(1s + scaled(150ms) + lag.slack()));
  const auto written = upstream.written();
  const bool answered_in_time = !written.empty() && written[0].at - reply.sent < 700ms;  // else the machine was late
  EXPECT_GE(upstream.arrival_count(), answered_in_time ? 2u : 1u);
  EXPECT_LE(upstream.arrival_count(), 3u);
}

// (c) It hangs: 504 at 1.0 +- 0.15 s, and the upstream sees a close by 1.3 s.
TEST(Deadline, RW20c_AHangingAttemptEndsAtTheDeadline) {
  ScriptedUpstream upstream(silent());
  GatewayProcess gateway(retrying(upstream));
  const MachineLag lag;
  const Reply reply = ask_once(gateway.port(), within_a_second);
  EXPECT_EQ(reply.status, 504) << reply.raw;
  EXPECT_EQ(plain_error_fault(reply), "");
  EXPECT_GE(to_ms(reply.took()), 850);
  EXPECT_LE(to_ms(reply.took()), to_ms(1s + scaled(150ms) + lag.slack()));
  ASSERT_TRUE(eventually(scaled(1s), [&] { return upstream.abandoned().size() == 1; }));
  EXPECT_LE(to_ms(upstream.abandoned()[0].at - reply.sent), to_ms(scaled(1300ms) + lag.slack()));
  EXPECT_EQ(upstream.arrival_count(), 1u);
}

}  // namespace
}  // namespace headgate::support
