// Callers who write on, or read nothing, at each stage of a request: bounded, ended at a limit, counted by its reason.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"

namespace headgate::support {
namespace {

std::string announced_body(std::size_t length, const std::string& key = "GW1") {
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer " + key +
         "\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}

class SlowStages : public testing::Test {
 protected:
  static nlohmann::json config_for(const ScriptedUpstream& upstream) {
    auto config = basic_config({&upstream});
    config["pools"]["p"]["backends"][0]["slots"] = 1;
    config["pools"]["p"]["probe"]["interval"] = "1h";
    config["limits"] = {{"write_stall", "500ms"}};
    return config;
  }
  double closed(const char* reason) const {
    return gateway_.metric("headgate_connections_closed_total", {{"reason", reason}});
  }
  bool closed_once(const char* reason) const {
    return eventually(scaled(5s), [&] { return closed(reason) == 1; });
  }

  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{config_for(upstream_)};
  MachineLag lag_;
};

// 64 MiB behind the request, while it waits in the queue or for the first byte: most of it stays with the caller, and
// the request is answered as ever.
TEST_F(SlowStages, WhoWritesOnWhileHisRequestWaitsIsNotRead) {
  const std::string surplus(64 << 20, 'x');
  for (const bool queued : {true, false}) {
    Event go;
    upstream_.set_script([&](Exchange& x) {
      if (!x.wait_for(go)) return;
      good_answer()(x);
    });
    const std::size_t before = upstream_.arrival_count();
    RawClient first(gateway_.port()), caller(gateway_.port());
    if (queued) {
      first.send(chat_request(chat_body(false)));
      ASSERT_TRUE(upstream_.await_arrivals(before + 1));
    }
    caller.send(chat_request(chat_body(false)));
    if (queued) {
      ASSERT_TRUE(eventually(5s, [&] { return gateway_.metric("headgate_queued") == 1; }));
    } else {
      ASSERT_TRUE(upstream_.await_arrivals(before + 1));
    }
    EXPECT_FALSE(caller.send(surplus, 1s)) << "64 MiB were taken from a caller whose turn it was not";
    EXPECT_EQ(gateway_.metric("headgate_requests_in_progress"), queued ? 2 : 1);
    go.set();
    const Reply reply = caller.read_reply(scaled(10s));
    EXPECT_EQ(reply.status, 200) << reply.raw;
    EXPECT_EQ(reply.body, good_body("m"));
    EXPECT_EQ(caller.read_reply(scaled(10s)).status, 431) << "what came behind is a head without end";
  }
}

// Refusals cost their reader too: thousands pipelined, none read.
TEST_F(SlowStages, WhoReadsNoneOfHisRefusalsIsCut) {
  std::string burst;
  for (int n = 0; n < 1000; ++n) burst += request("GET", "/v1/models", "", "Authorization: Bearer GW9\r\n");
  const Socket caller = connect_to_loopback(gateway_.port(), 5s, 4096);
  for (int n = 0; n < 100; ++n)
    if (!send_all(caller, burst, now() + scaled(2s))) break;
  EXPECT_TRUE(closed_once("write_stall"));
  EXPECT_EQ(gateway_.metric("headgate_requests_in_progress"), 0);
}

// A unary answer larger than all buffers together.
TEST_F(SlowStages, WhoReadsNothingOfAWholeAnswerIsCutAndHoldsNoSlot) {
  upstream_.set_script(
      [](Exchange& x) { x.write(plain_reply(200, "{\"text\":\"" + std::string(32 << 20, 'w') + "\"}")); });
  const Socket caller = connect_to_loopback(gateway_.port(), 5s, 4096);
  send_all(caller, chat_request(chat_body(false)), now() + 5s);
  EXPECT_TRUE(closed_once("write_stall"));
  upstream_.set_script(good_answer());
  EXPECT_EQ(ask_once(gateway_.port(), chat_request(chat_body(false)), scaled(5s)).status, 200);
}

// Refused, he may write on for 5 s ..
TEST_F(SlowStages, WhoTricklesARefusedBodyHasFiveSeconds) {
  RawClient caller(gateway_.port());
  const Reply refused = caller.ask(announced_body(1 << 20, "GW9"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.head.get("connection"), "close");
  while (closed("unread_body") == 0 && now() < after(refused.ended_at, scaled(10s))) {
    caller.send("x");
    caller.closed_by_peer(50ms);  // paces; true once he ended his side, which he did at once
  }
  const Nanos took = now() - refused.ended_at;
  EXPECT_EQ(closed("unread_body"), 1);
  EXPECT_GE(to_ms(took), 4900);
  EXPECT_LE(to_ms(took), to_ms(5s + scaled(500ms) + lag_.slack()));
}

// .. or 16 MiB.
TEST_F(SlowStages, WhoPoursARefusedBodyHasSixteenMebibytes) {
  RawClient caller(gateway_.port());
  EXPECT_EQ(caller.ask(announced_body(1u << 31)).status, 413);
  const Time begun = now();
  const std::string piece(1 << 20, 'x');
  std::size_t taken = 0;
  while (taken < 64 && caller.send(piece, scaled(2s))) ++taken;
  EXPECT_GE(taken, 15u);
  EXPECT_LT(taken, 64u) << "MiB";
  EXPECT_LT(now() - begun, scaled(4s));
  EXPECT_TRUE(closed_once("unread_body"));
}

// One "no" inside a burst ends nothing: every answer in its order, on the one connection.
TEST_F(SlowStages, ARefusalInsideABurstLeavesTheOthersAsTheyWere) {
  RawClient caller(gateway_.port());
  const std::string good = chat_request(chat_body(false));
  caller.send(good + announced_body(30 << 10, "GW9") + std::string(30 << 10, '{') +
              chat_request(chat_body(false, "nobody")) + good + request("GET", "/nowhere") +
              request("POST", "/v1/chat/completions", "{\"model\":") + good);
  const int expected[] = {200, 401, 404, 200, 404, 400, 200};
  for (const int status : expected) {
    const Reply reply = caller.read_reply(scaled(10s));
    EXPECT_EQ(reply.status, status) << reply.raw;
    EXPECT_TRUE(reply.complete);
    EXPECT_FALSE(reply.head.has("connection"));
  }
  EXPECT_EQ(upstream_.arrival_count(), 3u);
}

}  // namespace
}  // namespace headgate::support
