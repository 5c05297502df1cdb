// What HTTP.md promises of callers that are slow, idle or too large: each is answered or closed at its limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"

namespace headgate::support {
namespace {

std::string announced(const std::string& key, std::size_t length) {
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer " + key +
         "\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}

class ContractLimits : public testing::Test {
 protected:
  static nlohmann::json config_for(const ScriptedUpstream& upstream) {
    auto config = basic_config({&upstream});
    config["limits"] = {
        {"head_time", "500ms"}, {"body_idle", "500ms"}, {"keep_alive", "500ms"}, {"write_stall", "500ms"}};
    return config;
  }
  void expect_half_a_second(Nanos measured) const {
    EXPECT_GE(to_ms(measured), 400);
    EXPECT_LE(to_ms(measured), to_ms(500ms + scaled(200ms) + lag_.slack()));
  }
  // The message says which number was exceeded, its value and its limit.
  static void expect_refused(const Reply& reply, const std::string& code) {
    EXPECT_EQ(plain_error_fault(reply), "");
    EXPECT_EQ(error_code_of(reply), code);
    EXPECT_EQ(reply.head.get("x-headgate-refusal"), code);
    const std::string message = nlohmann::json::parse(reply.body)["error"]["message"];
    EXPECT_NE(message.find("500 ms"), std::string::npos) << message;
    EXPECT_EQ(message.find(" 0 ms"), std::string::npos) << message;
  }

  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{config_for(upstream_)};
  MachineLag lag_;
};

// However the bytes of a head trickle in, its time is the same.
TEST_F(ContractLimits, AHeadHasItsTime) {
  RawClient client(gateway_.port());
  const Time start = now();
  client.send_pieces({"POST /v1/chat", "/completions HTTP/1.1\r\n", "Host: g\r\n"}, 100ms);
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 408) << reply.raw;
  expect_refused(reply, "head_timeout");
  expect_half_a_second(reply.ended_at - start);
  EXPECT_TRUE(client.closed_by_peer(scaled(2s)));
}

TEST_F(ContractLimits, ABodysSilenceIsBounded) {
  RawClient client(gateway_.port());
  const std::string body = chat_body(false), head = announced("GW1", body.size());
  client.send_pieces({head, body.substr(0, 5), body.substr(5, 5)}, 300ms);
  const Time last = now() - 300ms;
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 408) << reply.raw;
  expect_refused(reply, "body_timeout");
  expect_half_a_second(reply.ended_at - last);
  EXPECT_TRUE(client.closed_by_peer(scaled(2s)));
  EXPECT_EQ(upstream_.arrival_count(), 0u);
}

TEST_F(ContractLimits, AnIdleConnectionIsClosed) {
  RawClient fresh(gateway_.port()), used(gateway_.port());
  Time start = now();
  EXPECT_TRUE(fresh.closed_by_peer(scaled(2s)));
  expect_half_a_second(now() - start);
  EXPECT_EQ(used.ask(chat_request(chat_body(false))).status, 0) << "it was idle just as long";
  RawClient kept(gateway_.port());
  EXPECT_EQ(kept.ask(chat_request(chat_body(false))).status, 200);
  start = now();
  EXPECT_TRUE(kept.closed_by_peer(scaled(2s)));
  expect_half_a_second(now() - start);
}

// Empty lines before a request are no begun head: nothing is said of them.
TEST_F(ContractLimits, EmptyLinesBeforeARequestAreNoRequest) {
  RawClient client(gateway_.port());
  EXPECT_EQ(client.ask("\r\n\r\n" + chat_request(chat_body(false)) + "\r\n").status, 200);
  EXPECT_EQ(client.ask(chat_request(chat_body(false)) + "\r\n\r").status, 200);
  const Time start = now();
  EXPECT_TRUE(client.closed_by_peer(scaled(2s))) << "without a word";
  expect_half_a_second(now() - start);
}

// A caller that reads nothing holds up the backend only for so long.
TEST_F(ContractLimits, ACallerThatReadsNothingIsCutOff) {
  upstream_.set_script([](Exchange& x) {
    x.write(stream_head());
    const std::string event = chunk(content_event(std::string(48 << 10, 'w')));
    while (x.write(event)) continue;
  });
  RawClient client(gateway_.port());
  client.send(chat_request(chat_body(true)));
  EXPECT_TRUE(eventually(scaled(10s), [&] { return upstream_.abandoned().size() == 1; }));
  EXPECT_TRUE(eventually(scaled(2s), [&] {
    return gateway_.metric("headgate_backend_in_flight", {{"backend", "p/u1"}}) == 0;
  }));
  EXPECT_EQ(gateway_.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 0);
}

// Refused by its head, a body of up to 64 KiB is read off as it comes and the connection kept; a longer one ends it.
TEST_F(ContractLimits, ARefusedBodyMayStillCome) {
  for (const std::size_t length : {std::size_t{64 << 10}, std::size_t{(64 << 10) + 1}}) {
    RawClient client(gateway_.port());
    const Reply refused = client.ask(announced("GW9", length));
    EXPECT_EQ(refused.status, 401) << refused.raw;
    const bool kept = length == 64 << 10;
    EXPECT_EQ(refused.head.get("connection"), kept ? "" : "close");
    client.send(std::string(length, 'x'));
    if (kept) {
      EXPECT_EQ(client.ask(chat_request(chat_body(false))).status, 200);
    } else {
      EXPECT_TRUE(client.closed_by_peer(scaled(10s)));
    }
  }
}

std::string message_of(const Reply& reply) { return nlohmann::json::parse(reply.body)["error"]["message"]; }

// However the bytes are framed, and however many come at once.
TEST(ContractBodySize, IsTheLimitOfChunkedBodiesToo) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["limits"]["body"] = "1KiB";
  GatewayProcess gateway(config);
  const std::string head = "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer GW1\r\n";
  const std::string empty = chat_body(false, "m", R"(,"pad":"")");
  for (const std::size_t size : {std::size_t{1024}, std::size_t{1025}, std::size_t{3000}}) {
    const std::string body = chat_body(false, "m", R"(,"pad":")" + std::string(size - empty.size(), 'x') + '"');
    ASSERT_EQ(body.size(), size);
    const Reply reply =
        ask_once(gateway.port(), head + "Transfer-Encoding: chunked\r\n\r\n" + chunk(body) + final_chunk());
    EXPECT_EQ(reply.status, size > 1024 ? 413 : 200) << reply.raw;
    if (reply.status == 200) continue;
    EXPECT_EQ(error_code_of(reply), "body_too_large");
    EXPECT_NE(message_of(reply).find(std::to_string(size) + " bytes"), std::string::npos) << reply.body;
    EXPECT_NE(message_of(reply).find("limit of 1024"), std::string::npos) << reply.body;
  }
  EXPECT_EQ(upstream.arrival_count(), 1u);
}

// The largest length that there is is named; beyond it is none.
TEST_F(ContractLimits, AnAbsurdLengthIsNeverNegative) {
  const auto announce = [&](const std::string& length) {
    return ask_once(gateway_.port(),
                    "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer GW1\r\n"
                    "Content-Length: " +
                        length + "\r\n\r\n");
  };
  const Reply largest = announce("9223372036854775807");
  EXPECT_EQ(largest.status, 413) << largest.raw;
  EXPECT_NE(message_of(largest).find("9223372036854775807 bytes"), std::string::npos) << largest.body;
  for (const char* length : {"9223372036854775808", "18446744073709551615", "99999999999999999999"}) {
    const Reply reply = announce(length);
    EXPECT_EQ(reply.status, 400) << reply.raw;
    EXPECT_NE(message_of(reply).find("too large"), std::string::npos) << reply.body;
  }
}

TEST_F(ContractLimits, AHeadHasAtMost128Fields) {
  std::string lines = "Authorization: Bearer GW1\r\nx-a: 1\r\n";
  const auto fields = [](const std::string& bytes) {
    return std::ranges::count(bytes.substr(0, bytes.find("\r\n\r\n")), '\n');
  };
  while (fields(chat_request(chat_body(false), lines)) < 128) lines += "x-a: 1\r\n";
  EXPECT_EQ(ask_once(gateway_.port(), chat_request(chat_body(false), lines)).status, 200);
  const Reply reply = ask_once(gateway_.port(), chat_request(chat_body(false), lines + "x-a: 1\r\n"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(message_of(reply).find("more than 128 header fields"), std::string::npos) << reply.body;
}

// Body memory for one of two: the other is told to come again, the first time.
TEST(ContractBodyMemory, IsRefusedWithAdvice) {
  ScriptedUpstream upstream(silent());
  auto config = basic_config({&upstream});
  config["limits"] = {{"body", "64KiB"}, {"bodies", "100KiB"}, {"bodies_per_key", "200KiB"}};
  GatewayProcess gateway(config);
  const std::string body = chat_body(false, "m", R"(,"pad":")" + std::string(60 << 10, 'x') + "\"");
  RawClient first(gateway.port());
  first.send(chat_request(body));
  ASSERT_TRUE(upstream.await_arrivals(1));
  for (const char* repeats : {"0", "1"}) {
    const Reply reply = ask_once(
        gateway.port(),
        chat_request(body, "Authorization: Bearer GW1\r\nx-stainless-retry-count: " + std::string(repeats) + "\r\n"));
    EXPECT_EQ(reply.status, 503) << reply.raw;
    EXPECT_EQ(plain_error_fault(reply), "");
    EXPECT_EQ(error_code_of(reply), "memory");
    EXPECT_EQ(nlohmann::json::parse(reply.body)["error"]["type"], "overloaded_error");
    EXPECT_GE(std::atoi(reply.head.get("retry-after").c_str()), 1);
    EXPECT_LE(std::atoi(reply.head.get("retry-after").c_str()), 60);
    EXPECT_TRUE(reply.head.has("retry-after-ms"));
    EXPECT_EQ(reply.head.get("x-should-retry"), repeats[0] == '0' ? "true" : "false");
  }
  EXPECT_EQ(upstream.arrival_count(), 1u);
  first.close();
  upstream.set_script(good_answer());
  EXPECT_TRUE(eventually(scaled(2s), [&] { return ask_once(gateway.port(), chat_request(body)).status == 200; }));
}

// One key's part is taken, with a length and in chunks: it is told so, another key is served meanwhile, and what is
// given back can be had again.
TEST(ContractBodyMemory, HasAPartForEachKey) {
  ScriptedUpstream upstream(silent());
  auto config = basic_config({&upstream});
  config["limits"] = {{"body", "64KiB"}, {"bodies", "1MiB"}, {"bodies_per_key", "100KiB"}};
  nlohmann::json second = config["keys"][0];
  second["name"] = "k2";
  second["key"] = "GW2";
  config["keys"].push_back(second);
  GatewayProcess gateway(config);
  const std::string body = chat_body(false, "m", R"(,"pad":")" + std::string(60 << 10, 'x') + "\"");
  const std::string chunked =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer GW1\r\n"
      "Transfer-Encoding: chunked\r\n\r\n" +
      chunk(body) + final_chunk();
  RawClient first(gateway.port());
  first.send(chat_request(body));
  ASSERT_TRUE(upstream.await_arrivals(1));
  for (const std::string& bytes : {chat_request(body), chunked}) {
    const Reply reply = ask_once(gateway.port(), bytes);
    EXPECT_EQ(reply.status, 429) << reply.raw;
    EXPECT_EQ(plain_error_fault(reply), "");
    EXPECT_EQ(error_code_of(reply), "bodies_per_key");
    EXPECT_GE(std::atoi(reply.head.get("retry-after").c_str()), 1);
  }
  EXPECT_EQ(upstream.arrival_count(), 1u);
  upstream.set_script(good_answer());
  EXPECT_EQ(ask_once(gateway.port(), chat_request(body, "Authorization: Bearer GW2\r\n")).status, 200);
  EXPECT_EQ(gateway.admin_post("/admin/reload").status, 200);
  EXPECT_EQ(ask_once(gateway.port(), chat_request(body)).status, 429) << "what is held is known after a reload";
  first.close();
  EXPECT_TRUE(eventually(scaled(2s), [&] { return gateway.metric("headgate_body_bytes_held") == 0; }));
  EXPECT_EQ(ask_once(gateway.port(), chat_request(body)).status, 200);
  EXPECT_EQ(ask_once(gateway.port(), chunked).status, 200);
}

// listen.connections_max counts for the process, whichever worker a connection comes to: one more is closed and
// counted.
TEST(ContractConnections, AreLimitedForTheProcess) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["workers"] = 2;
  config["listen"]["connections_max"] = 4;
  GatewayProcess gateway(config);
  std::vector<RawClient> callers;
  for (int n = 0; n < 4; ++n)
    EXPECT_EQ(callers.emplace_back(gateway.port()).ask(chat_request(chat_body(false))).status, 200);
  EXPECT_TRUE(RawClient(gateway.port()).closed_by_peer(5s));
  EXPECT_EQ(gateway.metric("headgate_connections_refused_total"), 1);
  callers.pop_back();
  EXPECT_TRUE(eventually(5s, [&] { return ask_once(gateway.port(), chat_request(chat_body(false))).status == 200; }));
}

}  // namespace
}  // namespace headgate::support
