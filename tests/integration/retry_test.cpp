// Second attempts and waiting advice: cases RW-08 and RW-09.
#include <gtest/gtest.h>

#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

int whole_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos ? std::stoi(text) : -1;
}

// Stage: the only upstream answers 429 with Retry-After: 7. A request at 0 s gets that 429 with an advice of 6 to 8.
// One at 1 s is answered by the gateway (the upstream still has one arrival) with, by our choice, 503
// no_healthy_backend, a plain error, Retry-After a whole number from 5 to 7. One at 7.5 s reaches the upstream.
TEST(Retry, RW08_ACoolingPoolIsAnsweredWithWaitingAdvice) {
  const std::string limited = R"({"error":{"message":"slow down","type":"rate_limit_error","code":"busy"}})";
  ScriptedUpstream upstream(always(plain_reply(429, limited, "Retry-After: 7\r\n")));
  GatewayProcess gateway(basic_config({&upstream}));
  RawClient client(gateway.port());
  const Time start = now();
  const Reply first = client.ask(chat_request(chat_body(false)));
  EXPECT_EQ(first.status, 429);
  EXPECT_EQ(first.body, limited);
  EXPECT_GE(whole_number(first.head.get("retry-after")), 6);
  EXPECT_LE(whole_number(first.head.get("retry-after")), 8);
  EXPECT_EQ(upstream.arrival_count(), 1u);

  std::this_thread::sleep_until(start + 1s);  // the moments are the stage
  const Reply second = client.ask(chat_request(chat_body(false)));
  EXPECT_EQ(second.status, 503);
  EXPECT_EQ(plain_error_fault(second), "");
  EXPECT_EQ(error_code_of(second), "no_healthy_backend");
  EXPECT_GE(whole_number(second.head.get("retry-after")), 5);
  EXPECT_LE(whole_number(second.head.get("retry-after")), 7);
  EXPECT_EQ(upstream.arrival_count(), 1u);

  std::this_thread::sleep_until(start + 7500ms);
  EXPECT_EQ(client.ask(chat_request(chat_body(false))).status, 429);
  EXPECT_EQ(upstream.arrival_count(), 2u);
}

nlohmann::json one_retry(const ScriptedUpstream& one, const ScriptedUpstream& two, bool after_delivery) {
  auto config = basic_config({&one, &two});
  config["routes"]["m"]["retry"]["attempts_max"] = 2;
  config["routes"]["m"]["retry"]["after_delivery"] = after_delivery;
  return config;
}

void reads_and_closes(Exchange& x) { x.close(); }

// Stage: two upstreams, one retry, on connect failure only. The first one's port refuses: the second has one arrival
// and the caller 200.
TEST(Retry, RW09a_ARefusedPortIsTriedElsewhere) {
  const RefusedPort refused;
  ScriptedUpstream unused(good_answer()), two(good_answer());
  auto config = one_retry(unused, two, false);
  config["pools"]["p"]["backends"][0] = backend_config("u1", refused.port());
  GatewayProcess gateway(config);
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false))).status, 200);
  EXPECT_EQ(two.arrival_count(), 1u);
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 1);
}

// The first one, on a fresh connection, reads the whole request and closes in silence: nothing at the second, and the
// caller has a 502 plain error.
TEST(Retry, RW09b_ADeliveredRequestIsNotSentAgain) {
  ScriptedUpstream one(reads_and_closes), two(good_answer());
  GatewayProcess gateway(one_retry(one, two, false));
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
  EXPECT_EQ(reply.status, 502);
  EXPECT_EQ(plain_error_fault(reply), "");
  EXPECT_EQ(one.arrival_count(), 1u);
  EXPECT_EQ(two.arrival_count(), 0u);
}

// The first one answers 500 with a body of its own: nothing at the second, and the caller has 500 and those bytes.
TEST(Retry, RW09c_TheUpstreamsOwnErrorBodyIsKept) {
  const std::string e1 = "{\"error\" : {\"message\":\"E1\",  \"code\":12345678901234567890}}\n";
  ScriptedUpstream one(always(plain_reply(500, e1))), two(good_answer());
  GatewayProcess gateway(one_retry(one, two, false));
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.body, e1);
  EXPECT_EQ(one.arrival_count(), 1u);
  EXPECT_EQ(two.arrival_count(), 0u);
}

// On a connection that has served one request the second is read in full, and that is the end: whether the backend was
// closing an idle connection or had begun to work nobody knows. By the rule it is not sent again; without it, it is.
TEST(Retry, WhetherAReusedConnectionBrokeOrItsBackendIsTheRulesBusiness) {
  for (const bool after_delivery : {false, true}) {
    ScriptedUpstream one([good = good_answer()](Exchange& x) { x.arrival().number == 1 ? x.close() : good(x); });
    auto config = basic_config({&one});
    config["routes"]["m"]["retry"]["after_delivery"] = after_delivery;
    GatewayProcess gateway(config);
    RawClient client(gateway.port());
    ASSERT_EQ(client.ask(chat_request(chat_body(false))).status, 200);
    const Reply reply = client.ask(chat_request(chat_body(false)));
    ASSERT_EQ(one.arrivals().at(1).connection, one.arrivals().at(0).connection);
    EXPECT_EQ(reply.status, after_delivery ? 200 : 502) << reply.raw;
    EXPECT_EQ(one.arrival_count(), after_delivery ? 3u : 2u);
  }
}

// (b) with the rule widened to "also after delivery": exactly one arrival at the second, and two attempts are reported.
TEST(Retry, RW09_WidenedToAfterDeliveryItIsSentOnceMore) {
  ScriptedUpstream one(reads_and_closes), two(good_answer());
  GatewayProcess gateway(one_retry(one, two, true));
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(one.arrival_count(), 1u);
  EXPECT_EQ(two.arrival_count(), 1u);
  EXPECT_EQ(reply.head.get("x-headgate-attempts"), "2");
  EXPECT_EQ(reply.head.get("x-headgate-backend"), "p/u2");
  EXPECT_EQ(gateway.access_lines(1)[0].value("attempts", 0), 2);
}

}  // namespace
}  // namespace headgate::support
