// What HTTP.md promises of refusals: status, code and headers of each, and that the next request is served.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"

namespace headgate::support {
namespace {

class Refusals : public testing::Test {
 protected:
  static nlohmann::json config_for(const ScriptedUpstream& upstream) {
    auto config = basic_config({&upstream});
    config["routes"]["other"] = config["routes"]["m"];
    nlohmann::json narrow;
    narrow["name"] = "narrow";
    narrow["key"] = "GW2";
    narrow["routes"] = {"other"};
    config["keys"].push_back(narrow);
    config["limits"]["body"] = "64KiB";
    return config;
  }

  // A refusal as the contract wants it, on every one of them.
  static void expect_refusal(const Reply& reply, int status, const std::string& code) {
    SCOPED_TRACE(reply.raw);
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(plain_error_fault(reply), "");
    EXPECT_EQ(error_code_of(reply), code);
    EXPECT_EQ(reply.head.all("x-headgate-refusal"), std::vector<std::string>{code});
    EXPECT_EQ(reply.head.all("x-request-id").size(), 1u);
    EXPECT_EQ(reply.head.get("x-should-retry"), "false");
    EXPECT_TRUE(nlohmann::json::parse(reply.body)["error"].contains("param"));
  }

  // Refused, and the next request on the same connection is served.
  void expect_refused(const std::string& bytes, int status, const std::string& code) {
    RawClient client(gateway_.port());
    expect_refusal(client.ask(bytes), status, code);
    EXPECT_EQ(client.ask(chat_request(chat_body(false))).status, 200) << "after: " << bytes.substr(0, 300);
    ++served_;
    EXPECT_EQ(upstream_.arrival_count(), served_);
  }

  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{config_for(upstream_)};
  std::size_t served_ = 0;
};

TEST_F(Refusals, WithoutAValidKey) {
  expect_refused(chat_request(chat_body(false), ""), 401, "invalid_api_key");
  expect_refused(chat_request(chat_body(false), "Authorization: Bearer GW9\r\n"), 401, "invalid_api_key");
  expect_refused(chat_request(chat_body(false), "Authorization: Basic GW1\r\n"), 401, "invalid_api_key");
  expect_refused(chat_request(chat_body(false), "x-api-key: GW9\r\n"), 401, "invalid_api_key");
  expect_refused(request("GET", "/v1/models", {}, {}), 401, "invalid_api_key");
}

TEST_F(Refusals, OfTwoKeys) {
  expect_refused(chat_request(chat_body(false), "Authorization: Bearer GW1\r\nx-api-key: GW2\r\n"), 400,
                 "invalid_header");
  expect_refused(chat_request(chat_body(false), "Authorization: Bearer GW1\r\nAuthorization: Bearer GW1\r\n"), 400,
                 "invalid_header");
  for (const char* headers : {"x-api-key: GW1\r\n", "Authorization: Bearer GW1\r\nx-api-key: GW1\r\n"}) {
    EXPECT_EQ(ask_once(gateway_.port(), chat_request(chat_body(false), headers)).status, 200) << headers;
  }
}

TEST_F(Refusals, OfModelsThatAreUnknownOrNotAllowed) {
  expect_refused(chat_request(chat_body(false, "nowhere")), 404, "model_not_found");
  expect_refused(chat_request(chat_body(false, "m"), "Authorization: Bearer GW2\r\n"), 403, "model_not_allowed");
}

TEST_F(Refusals, OfInvalidBodies) {
  std::string deep = R"({"model":"m","x":)";
  deep.append(300, '[').append(300, ']').append("}");
  const std::vector<std::string> bodies{
      "",
      "{",
      "[]",
      "\"m\"",
      R"({"messages":[]})",
      R"({"model":null,"messages":[]})",
      R"({"model":7,"messages":[]})",
      R"({"model":"m","model":"m","messages":[]})",
      R"({"model":"m","mod\u0065l":"other","messages":[]})",
      R"({"model":"m","stream":"yes","messages":[]})",
      R"({"model":"m","stream":true,"stream":false,"messages":[]})",
      R"({"model":"m","max_tokens":"5","messages":[]})",
      R"({"model":"m","stream":true,"stream_options":7,"messages":[]})",
      R"({"model":"m","messages":[],})",
      R"({"model":"m","messages":[]} x)",
      R"({"model":"m","a":01,"messages":[]})",
      "{\"model\":\"m\",\"a\":\"\xC3\x28\"}",
      "{\"model\":\"m\",\"a\":\"\xED\xA0\x80\"}",
      "{\"model\":\"m\",\"a\":\"line\nbreak\"}",
      deep,
  };
  for (const std::string& body : bodies) expect_refused(chat_request(body), 400, "invalid_body");
}

TEST_F(Refusals, OfCompressedBodies) {
  for (const char* coding : {"gzip", "br", "zstd"}) {
    const std::string headers = std::string(with_key) + "Content-Encoding: " + coding + "\r\n";
    expect_refused(chat_request("\x1f\x8b\x08 not read", headers), 415, "unsupported_encoding");
  }
  const std::string plain = std::string(with_key) + "Content-Encoding: identity\r\n";
  EXPECT_EQ(ask_once(gateway_.port(), chat_request(chat_body(false), plain)).status, 200);
}

TEST_F(Refusals, OfMalformedBudgets) {
  for (const char* value : {"soon", "-1", "1.5.2", "", "12ms", "0x10"}) {
    const std::string headers = std::string(with_key) + "x-headgate-deadline-ms: " + value + "\r\n";
    const Reply reply = ask_once(gateway_.port(), chat_request(chat_body(false), headers));
    expect_refusal(reply, 400, "invalid_header");
    EXPECT_NE(reply.body.find("x-headgate-deadline-ms"), std::string::npos) << reply.body;
  }
  for (const char* line : {"x-headgate-deadline-ms: 20000\r\n", "x-headgate-deadline-ms: 999999999999\r\n",
                           "x-stainless-timeout: never\r\n", "x-stainless-retry-count: 0\r\n"}) {
    EXPECT_EQ(ask_once(gateway_.port(), chat_request(chat_body(false), std::string(with_key) + line)).status, 200)
        << line;
  }
}

TEST_F(Refusals, OfOtherMethodsAndPaths) {
  struct Case {
    const char *method, *target, *allowed;
  };
  for (const auto& [method, target, allowed] : {Case{"GET", "/v1/chat/completions", "POST"},
                                                {"PUT", "/v1/chat/completions", "POST"},
                                                {"DELETE", "/v1/completions", "POST"},
                                                {"GET", "/v1/embeddings", "POST"},
                                                {"POST", "/v1/models", "GET"},
                                                {"POST", "/v1/models/m", "GET"},
                                                {"POST", "/healthz", "GET"},
                                                {"POST", "/readyz", "GET"},
                                                {"OPTIONS", "/v1/chat/completions", "POST"}}) {
    const Reply reply = ask_once(gateway_.port(), request(method, target, {}, with_key));
    expect_refusal(reply, 405, "method_not_allowed");
    EXPECT_NE(reply.head.get("allow").find(allowed), std::string::npos) << reply.raw;
  }
  for (const char* target : {"/v1/responses", "/v1/messages", "/v1/nothing", "/", "/v1/chat/completions/x"})
    expect_refused(request("POST", target, chat_body(false), with_key), 404, "not_found");
  EXPECT_EQ(ask_once(gateway_.port(), request("GET", "/metrics", {}, with_key)).status, 404);
  EXPECT_EQ(ask_once(gateway_.port(), request("GET", "/admin/state", {}, with_key)).status, 404);
}

TEST_F(Refusals, OfBodiesOverTheLimit) {
  const std::string large = chat_body(false, "m", R"(,"pad":")" + std::string(100 << 10, 'x') + "\"");
  expect_refusal(ask_once(gateway_.port(), chat_request(large)), 413, "body_too_large");

  std::string chunked =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer GW1\r\n"
      "Transfer-Encoding: chunked\r\n\r\n" +
      chunk(large) + final_chunk();
  expect_refusal(ask_once(gateway_.port(), chunked), 413, "body_too_large");
  EXPECT_EQ(upstream_.arrival_count(), 0u);

  const std::string fits = chat_body(false, "m", R"(,"pad":")" + std::string(60 << 10, 'x') + "\"");
  EXPECT_EQ(ask_once(gateway_.port(), chat_request(fits)).status, 200);
  ASSERT_EQ(upstream_.arrival_count(), 1u);
  EXPECT_EQ(upstream_.arrivals()[0].body, fits);
}

// The body is announced and not sent: a refusal that needs only the head comes instead of 100 Continue, within 200 ms;
// 100 Continue itself comes within 100 ms, and the body is at the upstream within 200 ms of being sent.
TEST_F(Refusals, RW25_ComeBeforeContinue) {
  const MachineLag lag;
  const auto head = [](const char* key, int length) {
    return std::string(
               "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\nAuthorization: Bearer ") +
           key + "\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
  };
  const Reply wrong_key = ask_once(gateway_.port(), head("GW9", 2000));
  expect_refusal(wrong_key, 401, "invalid_api_key");
  EXPECT_LE(to_ms(wrong_key.took()), to_ms(scaled(200ms) + lag.slack()));
  // He may now keep the body to himself, so that what follows could be taken for it.
  EXPECT_EQ(wrong_key.head.get("connection"), "close");
  const Reply too_large = ask_once(gateway_.port(), head("GW1", 100 << 10));
  expect_refusal(too_large, 413, "body_too_large");
  EXPECT_LE(to_ms(too_large.took()), to_ms(scaled(200ms) + lag.slack()));

  RawClient client(gateway_.port());
  const std::string body = chat_body(false, "m", R"(,"pad":")" + std::string(2000, 'x') + "\"");
  const Reply interim = client.ask(head("GW1", static_cast<int>(body.size())));
  EXPECT_EQ(interim.status, 100);
  EXPECT_LE(to_ms(interim.took()), to_ms(scaled(100ms) + lag.slack()));
  const Time sent = now();
  EXPECT_EQ(client.ask(body).status, 200);
  EXPECT_LE(to_ms(upstream_.arrivals().at(0).at - sent), to_ms(scaled(200ms) + lag.slack()));
  EXPECT_EQ(upstream_.arrival_count(), 1u);
  EXPECT_FALSE(upstream_.arrivals()[0].head.has("expect"));
}

TEST_F(Refusals, OfHeadsOverTheLimit) {
  const std::string wide = std::string(with_key) + "x-wide: " + std::string(40 << 10, 'w') + "\r\n";
  expect_refusal(ask_once(gateway_.port(), chat_request(chat_body(false), wide)), 431, "headers_too_large");
  EXPECT_EQ(upstream_.arrival_count(), 0u);
}

// Each of these is answered 400 and the connection closed, with the whole second request behind it never read as one.
TEST_F(Refusals, RW23_OfMessagesThatBreakTheWireRules) {
  const std::string start = "POST /v1/chat/completions HTTP/1.1\r\n", host = "Host: g\r\nAuthorization: Bearer GW1\r\n";
  const std::string body = chat_body(false), length = "Content-Length: " + std::to_string(body.size()) + "\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n", chunks = chunk(body) + final_chunk();
  const std::vector<std::pair<std::string, std::string>> forms{
      {"length and chunked", start + host + length + chunked + "\r\n" + chunks},
      {"chunked and length", start + host + chunked + length + "\r\n" + chunks},
      {"length repeated", start + host + length + length + "\r\n" + body},
      {"two lengths", start + host + length + "Content-Length: 5\r\n\r\n" + body},
      {"length with sign", start + host + "Content-Length: +5\r\n\r\n12345"},
      {"hex length", start + host + "Content-Length: 0x5\r\n\r\n12345"},
      {"length of two words", start + host + "Content-Length: 5 5\r\n\r\n12345"},
      {"gzip and length", start + host + "Transfer-Encoding: gzip\r\n" + length + "\r\n" + body},
      {"length and gzip", start + host + length + "Transfer-Encoding: gzip\r\n\r\n" + body},
      {"length list", start + host + "Content-Length: 5, 5\r\n\r\n12345"},
      {"gzip coding", start + host + "Transfer-Encoding: gzip\r\n\r\n" + chunks},
      {"gzip, chunked", start + host + "Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks},
      {"chunked twice", start + host + chunked + chunked + "\r\n" + chunks},
      {"xchunked", start + host + "Transfer-Encoding: xchunked\r\n\r\n" + chunks},
      {"chunked in 1.0", "POST /v1/chat/completions HTTP/1.0\r\n" + host + chunked + "\r\n" + chunks},
      {"folded line", start + host + "x-a: 1\r\n folded\r\n" + length + "\r\n" + body},
      {"bare LF", start + host + "x-a: 1\n" + length + "\r\n" + body},
      {"bare CR", start + host + "x-a: 1\rx-b: 2\r\n" + length + "\r\n" + body},
      {"space before colon", start + host + "x-a : 1\r\n" + length + "\r\n" + body},
      {"empty name", start + host + ": 1\r\n" + length + "\r\n" + body},
      {"invalid name", start + host + "x(a): 1\r\n" + length + "\r\n" + body},
      {"NUL", start + host + std::string("x-a: \0\r\n", 8) + length + "\r\n" + body},
      {"two hosts", start + host + "Host: h\r\n" + length + "\r\n" + body},
      {"no host", start + "Authorization: Bearer GW1\r\n" + length + "\r\n" + body},
      {"no version", "POST /v1/chat/completions\r\n" + host + length + "\r\n" + body},
      {"extra spaces", "POST  /v1/chat/completions HTTP/1.1\r\n" + host + length + "\r\n" + body},
      {"chunk size with sign", start + host + chunked + "\r\n+5\r\n12345\r\n0\r\n\r\n"},
      {"chunk size 0x", start + host + chunked + "\r\n0x5\r\n12345\r\n0\r\n\r\n"},
      {"chunk size bare LF", start + host + chunked + "\r\n5\n12345\r\n0\r\n\r\n"},
      {"chunk size of 17 digits", start + host + chunked + "\r\n00000000000000005\r\n12345\r\n0\r\n\r\n"},
  };
  for (const auto& [name, bytes] : forms) {
    SCOPED_TRACE(name);
    RawClient client(gateway_.port());
    const Reply reply = client.ask(bytes + chat_request(chat_body(false)));
    EXPECT_EQ(reply.status, 400) << reply.raw;
    EXPECT_EQ(plain_error_fault(reply), "");
    EXPECT_EQ(reply.head.all("x-request-id").size(), 1u);
    EXPECT_TRUE(client.closed_by_peer(scaled(5s))) << "the connection must close after the 400";
  }
  RawClient client(gateway_.port());
  const int status = client.ask("POST /v1/chat/completions HTTP/2.0\r\n" + host + length + "\r\n" + body).status;
  EXPECT_TRUE(status == 400 || status == 505) << status;
  EXPECT_TRUE(client.closed_by_peer(scaled(5s)));
  EXPECT_EQ(upstream_.arrival_count(), 0u);
}

// 401 and 404 are told from the head and the body; neither waits for anything at a backend, even if all slots are
// taken.
TEST_F(Refusals, CarryAdviceWhenNobodyIsHome) {
  const RefusedPort refused;
  auto config = basic_config({&upstream_});
  config["pools"]["p"]["backends"][0] = backend_config("u1", refused.port());
  config["pools"]["p"]["probe"]["interval"] = "100ms";  // passive health never takes out the last one: probes must
  config["pools"]["p"]["probe"]["timeout"] = "100ms";
  GatewayProcess gateway(config, {.wait_ready = false, .environment = {}});
  Reply reply;
  ASSERT_TRUE(eventually(20s, [&] {
    reply = ask_once(gateway.port(), chat_request(chat_body(false)));
    return error_code_of(reply) == "no_healthy_backend";
  })) << reply.raw;
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(plain_error_fault(reply), "");
  EXPECT_EQ(reply.head.get("x-headgate-refusal"), "no_healthy_backend");
  EXPECT_EQ(reply.head.get("x-should-retry"), "true");
  const int seconds = std::atoi(reply.head.get("retry-after").c_str());
  EXPECT_GE(seconds, 1);
  EXPECT_LE(seconds, 60);
  const Reply repeat = ask_once(
      gateway.port(), chat_request(chat_body(false), std::string(with_key) + "x-stainless-retry-count: 1\r\n"));
  EXPECT_EQ(repeat.status, 503);
  EXPECT_EQ(repeat.head.get("x-should-retry"), "false");
}

}  // namespace
}  // namespace headgate::support
