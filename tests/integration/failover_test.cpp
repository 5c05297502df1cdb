// Falling back and breakers: case RW-10.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

std::string fault_body(std::size_t n) {
  return R"({"error":{"message":"too long, number )" + std::to_string(n) + R"(","type":"invalid_request_error"}})";
}

// Stage: the breaker opens after 3 failures in a row. Ten requests are answered 400, each with its own body, ten 422,
// then one well. The caller gets each status and body unchanged and at last a 200; 21 arrivals; the breaker never left
// "closed" and no failure is counted.
TEST(Failover, RW10_TheCallersOwnMistakesDoNotOpenTheBreaker) {
  const Script good = good_answer();
  ScriptedUpstream upstream([&](Exchange& x) {
    const std::size_t n = x.arrival().number;
    if (n < 20) return static_cast<void>(x.write_last(plain_reply(n < 10 ? 400 : 422, fault_body(n))));
    good(x);
  });
  auto config = basic_config({&upstream});
  config["pools"]["p"]["health"]["consecutive_failures"] = 3;
  GatewayProcess gateway(config);
  RawClient client(gateway.port());
  for (std::size_t n = 0; n < 20; ++n) {
    const Reply reply = client.ask(chat_request(chat_body(n % 2 == 0)));
    EXPECT_EQ(reply.status, n < 10 ? 400 : 422);
    EXPECT_EQ(reply.body, fault_body(n));
    EXPECT_EQ(gateway.state().at("backends").at(0).value("health", ""), "up");
  }
  EXPECT_EQ(client.ask(chat_request(chat_body(false))).status, 200);
  EXPECT_EQ(upstream.arrival_count(), 21u);
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 0);
  EXPECT_EQ(gateway.metric("headgate_health_changes_total", {{"backend", "p/u1"}}), 0);
  EXPECT_EQ(gateway.metric("headgate_ejections_total", {{"backend", "p/u1"}}), 0);
}

}  // namespace
}  // namespace headgate::support
