// Headers, credentials and model names: cases RW-26 and RW-27.
#include <gtest/gtest.h>

#include <memory>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

// Stage: the caller sends its gateway key GW1 twice, proxy credentials, a cookie, hop-only headers and one that its
// Connection header names, beside X-Trace: t. The upstream has a key of its own, K1, and answers with hop-only headers.
// The upstream sees one Authorization, Bearer K1, its own authority as Host, X-Trace, and none of the rest; GW1 is
// nowhere in what it got. The caller sees no hop-only header. Neither key is in a log line or a metric.
TEST(Identity, RW26_CredentialsAndHopHeadersStopAtTheGateway) {
  ScriptedUpstream upstream([](Exchange& x) {
    const std::string hop = "Connection: x-up\r\nx-up: 1\r\nKeep-Alive: timeout=9\r\nx-kept: 1\r\n";
    if (x.arrival().body.find("\"stream\":true") == std::string::npos)
      return static_cast<void>(x.write_last(plain_reply(200, good_body("m"), hop)));
    x.write(stream_head(hop));
    for (const std::string& event : good_events("m", true)) x.write(chunk(event));
    x.write_last(final_chunk());
  });
  auto config = basic_config({&upstream});
  config["log"]["level"] = "trace";
  GatewayProcess gateway(config);
  const std::string headers =
      "Authorization: Bearer GW1\r\nProxy-Authorization: Basic R1cx\r\nX-Api-Key: GW1\r\nCookie: session=GW1\r\n"
      "TE: trailers\r\nUpgrade: h2c\r\nKeep-Alive: timeout=5\r\nConnection: x-drop\r\nx-drop: 1\r\nX-Trace: t\r\n";
  for (const bool stream : {false, true}) {
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(stream), headers));
    EXPECT_EQ(reply.status, 200);
    EXPECT_FALSE(reply.head.has("x-up"));
    EXPECT_FALSE(reply.head.has("keep-alive"));
    EXPECT_EQ(reply.head.get("connection").find("x-up"), std::string::npos);
    EXPECT_EQ(reply.head.get("x-kept"), "1");
  }
  ASSERT_EQ(upstream.arrival_count(), 2u);
  for (const Arrival& arrival : upstream.arrivals()) {
    EXPECT_EQ(arrival.head.all("authorization"), std::vector<std::string>{"Bearer K1"});
    EXPECT_EQ(arrival.head.all("host"), std::vector<std::string>{upstream.authority()});
    EXPECT_EQ(arrival.head.all("x-trace"), std::vector<std::string>{"t"});
    for (const char* name : {"proxy-authorization", "x-api-key", "cookie", "te", "upgrade", "keep-alive", "x-drop"})
      EXPECT_FALSE(arrival.head.has(name)) << name;
    EXPECT_EQ(arrival.head.get("connection").find("x-drop"), std::string::npos);
    EXPECT_EQ(arrival.raw.find("GW1"), std::string::npos) << arrival.raw;
  }
  gateway.access_lines(2);
  for (const std::string& text : {gateway.access_text(), gateway.output(), gateway.metrics_text()})
    for (const char* key : {"GW1", "K1"}) EXPECT_EQ(text.find(key), std::string::npos) << text;
}

// A server that knows one model name and one key: 404 to other names, 401 to other keys.
Script strict_server(std::string model, std::string key, Script answer) {
  return [=](Exchange& x) {
    const std::string error = R"({"error":{"message":"no","type":"invalid_request_error","code":"no"}})";
    if (x.arrival().head.get("authorization") != "Bearer " + key)
      return static_cast<void>(x.write_last(plain_reply(401, error)));
    if (x.arrival().json().value("model", "") != model) return static_cast<void>(x.write_last(plain_reply(404, error)));
    answer(x);
  };
}

struct Named {
  ScriptedUpstream& upstream;
  std::string pool, model, key;
};

void expect_only_its_own(const Named& server, const Named& other) {
  for (const Arrival& arrival : server.upstream.arrivals()) {
    EXPECT_EQ(arrival.json().value("model", ""), server.model);
    EXPECT_EQ(arrival.head.all("authorization"), std::vector<std::string>{"Bearer " + server.key});
    EXPECT_EQ(arrival.raw.find(other.key), std::string::npos);
    EXPECT_EQ(arrival.raw.find(other.model), std::string::npos);
    EXPECT_EQ(arrival.head.get("content-length"), std::to_string(arrival.body.size()));
  }
}

// One request for "fast" with `first` ahead of `second`; the answer must be the one of `answering`.
void expect_served_by(const Named& answering, const Named& first, const Named& second, bool stream) {
  auto config = chain_config({&first.upstream, &second.upstream});
  const nlohmann::json pools = config["pools"];
  config["pools"] = nlohmann::json::object();
  for (const auto& [server, from] : {std::pair{first, "p1"}, std::pair{second, "p2"}}) {
    config["pools"][server.pool] = pools[from];
    config["pools"][server.pool]["model"] = server.model;
    config["pools"][server.pool]["api_key"] = server.key;
  }
  config["routes"]["fast"] = config["routes"]["m"];
  config["routes"].erase("m");
  config["routes"]["fast"]["pools"] = {first.pool, second.pool};
  config["routes"]["fast"]["retry"]["attempts_max"] = 2;
  GatewayProcess gateway(config);
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(stream, "fast")));
  ASSERT_EQ(reply.status, 200) << reply.raw;
  const auto payloads = stream ? data_of(reply.body) : std::vector<std::string>{reply.body};
  EXPECT_EQ(payloads.size(), stream ? 8u : 1u);
  for (const std::string& payload : payloads) {
    if (payload == "[DONE]") continue;
    EXPECT_EQ(nlohmann::json::parse(payload).value("model", ""), answering.model) << payload;
  }
}

// Stage: public model "fast"; the first server calls it a-small (key K1), the second b-large (key K2), each refusing
// other names and keys. One answers 503; plain and streamed, then with the order swapped. The caller gets 200 each
// time; each server saw only its own name and key, with a length that fits its body. The reply's model value is, by our
// rule, what the answering server sent, the same in every event.
TEST(Identity, RW27_EachUpstreamGetsItsOwnModelNameAndKey) {
  for (const bool stream : {false, true}) {
    for (const bool first_fails : {true, false}) {
      const Script busy = always(plain_reply(503, R"({"error":{"message":"busy"}})"));
      ScriptedUpstream one(strict_server("a-small", "K1", first_fails ? busy : good_answer()));
      ScriptedUpstream two(strict_server("b-large", "K2", first_fails ? good_answer() : busy));
      const Named a{one, "small", "a-small", "K1"}, b{two, "large", "b-large", "K2"};
      const Named &good = first_fails ? b : a, &bad = first_fails ? a : b;
      expect_served_by(good, bad, good, stream);  // falls back
      expect_served_by(good, good, bad, stream);  // the good one goes first
      EXPECT_EQ(good.upstream.arrival_count(), 2u);
      EXPECT_EQ(bad.upstream.arrival_count(), 1u);
      expect_only_its_own(a, b);
      expect_only_its_own(b, a);
    }
  }
}

// What could not be read is in the access log as what was answered: by the id that its caller was told.
TEST(Identity, WhatCouldNotBeReadHasItsLineInTheAccessLog) {
  ScriptedUpstream upstream(silent());
  GatewayProcess gateway(basic_config({&upstream}));
  const std::pair<std::string, std::string> rows[] = {
      {"garbage\r\n\r\n", "bad_request"},
      {"GET /v1/chat/completions HTTP/2.0\r\n\r\n", "version_not_supported"},
      {"GET / HTTP/1.1\r\nHost: h\r\nx: " + std::string(40'000, 'x') + "\r\n\r\n", "headers_too_large"}};
  for (std::size_t n = 0; n < std::size(rows); ++n) {
    const Reply reply = ask_once(gateway.port(), rows[n].first);
    const auto line = gateway.access_lines(n + 1).at(n);
    EXPECT_EQ(line.value("id", ""), reply.head.get("x-request-id"));
    EXPECT_EQ(line.value("cause", ""), rows[n].second);
    EXPECT_EQ(line.value("status", 0), reply.status);
    EXPECT_EQ(line.value("outcome", ""), "rejected");
    EXPECT_EQ(line.value("client", ""), "127.0.0.1");
    EXPECT_EQ(line.value("path", "?"), "");
    EXPECT_GT(line.value("bytes", 0), 0);
    EXPECT_LT(line.value("total_ms", 1e9), 5000.0);
  }
  EXPECT_EQ(gateway.metric("headgate_requests_total", {{"outcome", "rejected"}}), 3);
}

// A closed port: the answer says that the backend failed, the log how.
TEST(Identity, TheAccessLogSaysHowTheLastAttemptEnded) {
  auto upstream = std::make_unique<ScriptedUpstream>(silent());
  const auto config = basic_config({upstream.get()});
  upstream.reset();
  GatewayProcess gateway(config);
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false))).status, 502);
  const auto line = gateway.access_lines(1).at(0);
  EXPECT_EQ(line.value("cause", ""), "upstream_failed");
  EXPECT_EQ(line.value("last_end", ""), "connect");
}

}  // namespace
}  // namespace headgate::support
