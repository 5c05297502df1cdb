// What HTTP.md promises of the refusals that speak of time: which one it is, when to come back, and whether to.
#include <gtest/gtest.h>

#include <csignal>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

std::string asking(const std::string& lines = {}) { return chat_request(chat_body(false), headers_with(lines)); }

int whole_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos ? std::stoi(text) : -1;
}

void expect_refusal(const Reply& reply, int status, const std::string& type, const std::string& code) {
  EXPECT_EQ(reply.status, status) << reply.raw;
  EXPECT_EQ(plain_error_fault(reply), "");
  EXPECT_EQ(error_code_of(reply), code);
  EXPECT_EQ(nlohmann::json::parse(reply.body)["error"]["type"], type);
  EXPECT_EQ(reply.head.all("x-headgate-refusal"), std::vector<std::string>{code});
}

// Whole seconds, and the same more exactly beside them.
void expect_advice(const Reply& reply, int least_s, int most_s) {
  const int seconds = whole_number(reply.head.get("retry-after"));
  const int ms = whole_number(reply.head.get("retry-after-ms"));
  EXPECT_GE(seconds, least_s) << reply.head.raw;
  EXPECT_LE(seconds, most_s) << reply.head.raw;
  EXPECT_EQ(seconds, (ms + 999) / 1000) << reply.head.raw;
}

void one_runs_one_waits(ScriptedUpstream& upstream, const GatewayProcess& gateway, RawClient& running,
                        RawClient& queued) {
  running.send(asking());
  ASSERT_TRUE(upstream.await_arrivals(1));
  queued.send(asking());
  ASSERT_TRUE(eventually(10s, [&] { return gateway.metric("headgate_queued", {{"pool", "p"}}) == 1; }));
}

// The slot and the only place in the queue are taken. True the first time, also where the SDK says that this is its
// repeat number 0; a repeat while it is still so is told to stop.
TEST(ContractAdvice, QueueFullIsWorthOneRepeat) {
  ScriptedUpstream upstream(silent());
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 1;
  config["pools"]["p"]["queue"]["requests_max"] = 1;
  GatewayProcess gateway(config);
  RawClient running(gateway.port()), queued(gateway.port());
  ASSERT_NO_FATAL_FAILURE(one_runs_one_waits(upstream, gateway, running, queued));
  struct Case {
    const char *line, *should_retry;
  };
  for (const auto& [line, should_retry] : {Case{"", "true"},
                                           {"x-stainless-retry-count: 0\r\n", "true"},
                                           {"x-stainless-retry-count: often\r\n", "true"},
                                           {"x-stainless-retry-count: 1\r\n", "false"},
                                           {"x-stainless-retry-count: 7\r\n", "false"}}) {
    const Reply reply = ask_once(gateway.port(), asking(line));
    expect_refusal(reply, 503, "overloaded_error", "queue_full");
    expect_advice(reply, 1, 60);
    EXPECT_EQ(reply.head.get("x-should-retry"), should_retry) << line;
    EXPECT_NE(reply.body.find("1 waiting, limit 1"), std::string::npos) << reply.body;
  }
  EXPECT_EQ(upstream.arrival_count(), 1u);
}

TEST(ContractAdvice, ADeadlineThatPassesInTheQueueIs504) {
  ScriptedUpstream upstream(silent());
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 1;
  GatewayProcess gateway(config);
  RawClient running(gateway.port());
  running.send(asking());
  ASSERT_TRUE(upstream.await_arrivals(1));
  const Reply reply = ask_once(gateway.port(), asking("x-headgate-deadline-ms: 300\r\n"));
  expect_refusal(reply, 504, "timeout_error", "deadline_exceeded");
  EXPECT_EQ(reply.head.get("x-should-retry"), "false");
  EXPECT_FALSE(reply.head.has("retry-after"));
  EXPECT_NE(reply.body.find("limit of 300 ms"), std::string::npos) << reply.body;
  EXPECT_EQ(upstream.arrival_count(), 1u);
}

// Thirty answers of 400 ms each have shown how long one takes; with every slot held nobody can have one in 350 ms.
TEST(ContractAdvice, ADeadlineThatCannotBeMetIsRefusedAtOnce) {
  ScriptedUpstream upstream(good_answer({.delay = 400ms}));
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 10;
  GatewayProcess gateway(config);
  std::vector<RawClient> clients;
  for (int n = 0; n < 30; ++n) clients.emplace_back(gateway.port()).send(asking());
  for (RawClient& client : clients) ASSERT_EQ(client.read_reply().status, 200);
  upstream.set_script(silent());
  for (int n = 0; n < 10; ++n) clients[static_cast<std::size_t>(n)].send(asking());
  ASSERT_TRUE(upstream.await_arrivals(40));
  for (const bool repeat : {false, true}) {
    const Reply reply = ask_once(gateway.port(), asking(std::string("x-headgate-deadline-ms: 350\r\n") +
                                                        (repeat ? "x-stainless-retry-count: 1\r\n" : "")));
    expect_refusal(reply, 503, "overloaded_error", "deadline_unmeetable");
    expect_advice(reply, 1, 60);
    EXPECT_EQ(reply.head.get("x-should-retry"), repeat ? "false" : "true");
  }
  EXPECT_EQ(upstream.arrival_count(), 40u);
}

// Who still waits when the drain's time is up may be served by another gateway.
TEST(ContractAdvice, WhoWaitsAtTheEndOfADrainMayComeBack) {
  ScriptedUpstream upstream(silent());
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 1;
  config["drain"] = "200ms";
  GatewayProcess gateway(config);
  RawClient running(gateway.port()), queued(gateway.port());
  ASSERT_NO_FATAL_FAILURE(one_runs_one_waits(upstream, gateway, running, queued));
  gateway.signal(SIGTERM);
  const Reply reply = queued.read_reply();
  expect_refusal(reply, 503, "overloaded_error", "shutting_down");
  EXPECT_EQ(reply.head.get("x-should-retry"), "true");
  EXPECT_TRUE(gateway.exit_code(scaled(5s)).has_value());
}

// A backend works on it: the answer says so, and to come back only where a second delivery is allowed.
TEST(ContractAdvice, WhoRunsAtTheEndOfADrainIsToldThatABackendHadIt) {
  for (const bool after_delivery : {true, false}) {
    ScriptedUpstream upstream(silent());
    auto config = basic_config({&upstream});
    config["drain"] = "200ms";
    config["routes"]["m"]["retry"]["after_delivery"] = after_delivery;
    GatewayProcess gateway(config);
    RawClient running(gateway.port());
    running.send(asking());
    ASSERT_TRUE(upstream.await_arrivals(1));
    gateway.signal(SIGTERM);
    const Reply reply = running.read_reply();
    EXPECT_EQ(reply.status, 503);
    EXPECT_NE(reply.body.find("\"shutting_down\""), std::string::npos) << reply.body;
    EXPECT_FALSE(reply.head.has("x-headgate-refusal"));
    EXPECT_EQ(reply.head.get("x-headgate-backend"), "p/u1");
    EXPECT_EQ(reply.head.get("x-headgate-attempts"), "1");
    EXPECT_EQ(reply.head.get("x-should-retry"), after_delivery ? "true" : "false");
    EXPECT_TRUE(gateway.exit_code(scaled(5s)).has_value());
  }
}

// Over 60 s: the true value, and no word that would bring an SDK back at once.
TEST(ContractAdvice, OfMoreThanAMinuteIsTrueAndSaysNotToRetry) {
  const std::string busy = R"({"error":{"message":"slow down","type":"a","code":"b"}})";
  ScriptedUpstream upstream(always(plain_reply(429, busy, "Retry-After: 600\r\n")));
  auto config = basic_config({&upstream});
  config["pools"]["p"]["health"]["cooldown_max"] = "15m";
  GatewayProcess gateway(config);
  EXPECT_EQ(ask_once(gateway.port(), asking()).status, 429);
  const Reply reply = ask_once(gateway.port(), asking());
  expect_refusal(reply, 503, "overloaded_error", "no_healthy_backend");
  expect_advice(reply, 560, 600);
  EXPECT_EQ(reply.head.get("x-should-retry"), "false");
}

}  // namespace
}  // namespace headgate::support
