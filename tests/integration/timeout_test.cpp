// First-token, silence and total limits: cases RW-18 and RW-19.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"

namespace headgate::support {
namespace {

void expect_about(Nanos measured, Nanos expected, Nanos tolerance, const MachineLag& lag) {
  EXPECT_GE(to_ms(measured), to_ms(expected - tolerance));
  EXPECT_LE(to_ms(measured), to_ms(expected + scaled(tolerance) + lag.slack()));
}

// The stream ended in order with one error event as its last, and without [DONE].
void expect_one_error_event(const Reply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.raw;
  EXPECT_TRUE(reply.complete || reply.closed) << reply.raw;
  std::size_t errors = 0;
  for (const std::string& payload : data_of(reply.body)) errors += payload.find("\"error\"") != std::string::npos;
  EXPECT_EQ(errors, 1u) << reply.body;
  EXPECT_NE(last_data_of(reply.body).find("\"error\""), std::string::npos) << reply.body;
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos) << reply.body;
}

// One request given up by the gateway, and when that was, counted from the start.
void expect_given_up(const ScriptedUpstream& upstream, Time start, Nanos by, const MachineLag& lag) {
  ASSERT_TRUE(eventually(scaled(2s), [&] { return upstream.abandoned().size() == 1; }));
  EXPECT_LE(to_ms(upstream.abandoned()[0].at - start), to_ms(scaled(by) + lag.slack()));
}

// Of RW-18: plain replies 2 s in all, 1 s of silence inside a stream, streams not capped (the longest there is).
nlohmann::json lively_limits(const ScriptedUpstream& upstream) {
  auto config = basic_config({&upstream});
  auto& timeouts = config["routes"]["m"]["timeouts"];
  timeouts["total_unary"] = "2s";
  timeouts["idle"] = "1s";
  timeouts["total_stream"] = "168h";
  return config;
}

// (a) An event every 0.5 s, twelve of them: all twelve and the end mark come, in 6.0 +- 0.3 s.
TEST(Timeout, RW18a_ALivelyStreamIsNotCut) {
  ScriptedUpstream upstream([](Exchange& x) {
    x.write(stream_head());
    const Time start = now();
    for (int n = 1; n <= 12; ++n) {
      if (!x.wait_until(start + n * 500ms)) return;
      x.write(chunk(content_event("w" + std::to_string(n) + " ")));
    }
    x.write(chunk(finish_event() + done_event()));
    x.write_last(final_chunk());
  });
  GatewayProcess gateway(lively_limits(upstream));
  const MachineLag lag;
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(true)), 40s);
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(content_of(reply.body), "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 ");
  EXPECT_EQ(last_data_of(reply.body), "[DONE]");
  expect_about(reply.took(), 6s, 300ms, lag);
}

// (b) A plain reply that would come after 6 s: 504 at 2.0 +- 0.2 s, and the upstream sees its connection closed.
TEST(Timeout, RW18b_APlainReplyHasALimitInAll) {
  ScriptedUpstream upstream(good_answer({.delay = 6s}));
  GatewayProcess gateway(lively_limits(upstream));
  const MachineLag lag;
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)), 40s);
  EXPECT_EQ(reply.status, 504);
  EXPECT_EQ(plain_error_fault(reply), "");
  expect_about(reply.took(), 2s, 200ms, lag);
  expect_given_up(upstream, reply.sent, 2500ms, lag);
}

// (c) Three events, then silence, eight at once with at most eight attempts upstream. Each gets one error event and its
// end 1.0 +- 0.2 s after its third event, the upstream sees eight closes, and then a good request takes at most 300 ms.
TEST(Timeout, RW18c_AStalledStreamGivesItsPlaceBack) {
  ScriptedUpstream upstream([](Exchange& x) {
    x.write(stream_head());
    for (const char* word : {"one ", "two ", "three "}) x.write(chunk(content_event(word)));
    x.wait_until_gone(30s);
  });
  auto config = lively_limits(upstream);
  config["pools"]["p"]["backends"][0]["slots"] = 8;
  config["pools"]["p"]["queue"]["requests_max"] = 0;
  GatewayProcess gateway(config);
  const MachineLag lag;
  std::vector<std::jthread> callers;
  for (int n = 0; n < 8; ++n)
    callers.emplace_back([&] {
      RawClient client(gateway.port());
      client.send(chat_request(chat_body(true)));
      const Reply three = client.read_reply(10s, [](const Reply& r) { return content_of(r.body) == "one two three "; });
      ASSERT_FALSE(three.pieces.empty()) << three.raw;
      const Reply reply = client.read_reply(10s);
      expect_one_error_event(reply);
      EXPECT_EQ(content_of(reply.body), "one two three ");
      expect_about(reply.ended_at - three.pieces.back().at, 1s, 200ms, lag);
    });
  callers.clear();
  EXPECT_TRUE(eventually(scaled(1s), [&] { return upstream.abandoned().size() == 8; }));
  EXPECT_EQ(upstream.open_max(), 8u);
  upstream.set_script(good_answer());
  const Reply good = ask_once(gateway.port(), chat_request(chat_body(false)));
  EXPECT_EQ(good.status, 200) << good.raw;
  EXPECT_LE(to_ms(good.took()), to_ms(scaled(300ms) + lag.slack()));
}

// Of RW-19: 1 s to the first token, 0.5 s between tokens.
nlohmann::json token_limits(const ScriptedUpstream& upstream) {
  auto config = basic_config({&upstream});
  config["routes"]["m"]["timeouts"]["first_token"] = "1s";
  config["routes"]["m"]["timeouts"]["idle"] = "500ms";
  return config;
}

// Stage of (a) to (c): `script` never sends content. The caller's answer is there 1.0 +- 0.15 s after it sent the
// request, the upstream sees a close by 1.3 s, and no time to first token is recorded.
Reply ask_in_vain(const Script& script) {
  ScriptedUpstream upstream(script);
  GatewayProcess gateway(token_limits(upstream));
  const MachineLag lag;
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(true)), 40s);
  expect_about(reply.took(), 1s, 150ms, lag);
  expect_given_up(upstream, reply.sent, 1300ms, lag);
  EXPECT_EQ(gateway.metric("headgate_ttft_seconds_count", {{"route", "m"}}), 0);
  EXPECT_TRUE(gateway.access_lines(1)[0].value("ttft_ms", nlohmann::json()).is_null());
  return reply;
}

// (a) Silence for 10 s: a 504 plain error.
TEST(Timeout, RW19a_ASilentServerIsLeftAtTheFirstTokenLimit) {
  const Reply reply = ask_in_vain(silent(10s));
  EXPECT_EQ(reply.status, 504) << reply.raw;
  EXPECT_EQ(plain_error_fault(reply), "");
}

// (b) The head at once, then silence: our head is out by then, so one error event.
TEST(Timeout, RW19b_AReplyHeadIsNoToken) {
  expect_one_error_event(ask_in_vain([](Exchange& x) {
    x.write(stream_head());
    x.wait_until_gone(10s);
  }));
}

// (c) The head, then a comment every 0.3 s: one error event.
TEST(Timeout, RW19c_AHeartbeatIsNoToken) {
  expect_one_error_event(ask_in_vain([](Exchange& x) {
    x.write(stream_head());
    for (int n = 0; n < 33 && x.wait(300ms); ++n) x.write(chunk(": hb\n\n"));
  }));
}

// (d) The head at once, content at 0.8 s, then events every 0.1 s: a success, with 0.8 +- 0.1 s recorded once.
TEST(Timeout, RW19d_ALateFirstTokenIsInTime) {
  ScriptedUpstream upstream([](Exchange& x) {
    x.write(stream_head());
    if (!x.wait(800ms)) return;
    for (int n = 0; n < 5; ++n) {
      x.write(chunk(content_event("w")));
      if (!x.wait(100ms)) return;
    }
    x.write(chunk(finish_event() + done_event()));
    x.write_last(final_chunk());
  });
  GatewayProcess gateway(token_limits(upstream));
  const MachineLag lag;
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(true)), 40s);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(content_of(reply.body), "wwwww");
  EXPECT_EQ(last_data_of(reply.body), "[DONE]");
  const auto recorded = [&] { return gateway.metric("headgate_ttft_seconds_count", {{"route", "m"}}); };
  ASSERT_TRUE(eventually(5s, [&] { return recorded() == 1; })) << recorded();
  const double recorded_ms = gateway.metric("headgate_ttft_seconds_sum", {{"route", "m"}}) * 1000;
  EXPECT_GE(recorded_ms, 700);
  EXPECT_LE(recorded_ms, to_ms(800ms + scaled(100ms) + lag.slack()));
  EXPECT_NEAR(gateway.access_lines(1)[0].value("ttft_ms", 0.0), recorded_ms, 2);
}

// Stage: the upstream streams as fast as it is read, the caller takes 200 bytes each 20 ms, so that no write stalls and
// each takes seconds. The stream's total is 1 s: then the slot is free, whatever the caller still has to read.
TEST(Timeout, AReaderWhoTakesALittleNowAndThenCannotHoldASlotBeyondTheTotal) {
  ScriptedUpstream upstream([](Exchange& x) {
    x.write(stream_head());
    const std::string event =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + std::string(30000, 'w') + "\"}}]}\n\n";
    while (x.write(chunk(event))) {
    }
  });
  auto config = basic_config({&upstream});
  config["routes"]["m"]["timeouts"]["total_stream"] = "1s";
  GatewayProcess gateway(config);
  MachineLag lag;
  const Socket caller = connect_to_loopback(gateway.port(), 5s, 4096);
  const Time begun = now();
  ASSERT_TRUE(send_all(caller, chat_request(chat_body(true)), now() + 5s));
  ASSERT_TRUE(upstream.await_arrivals(1));
  std::array<char, 200> bytes;
  while (gateway.metric("headgate_backend_in_flight") > 0) {
    ASSERT_LE(to_ms(now() - begun), 20000);
    ::recv(caller.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    std::this_thread::sleep_for(20ms);  // the reader's pace is the input
  }
  EXPECT_GE(to_ms(now() - begun), 990);
  EXPECT_LE(to_ms(now() - begun), to_ms(1s + scaled(300ms) + lag.slack()));
}

}  // namespace
}  // namespace headgate::support
