// What HTTP.md promises of requests and answers on their way through, beyond the cases.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

class Contract : public testing::Test {
 protected:
  // The pool named p keeps the caller's model name; route "alias" has a pool whose backends know it as "real-name".
  static nlohmann::json config_for(const ScriptedUpstream& upstream) {
    auto config = basic_config({&upstream});
    config["pools"]["named"] = config["pools"]["p"];
    config["pools"]["named"]["model"] = "real-name";
    config["pools"]["p"].erase("model");
    config["routes"]["alias"] = config["routes"]["m"];
    config["routes"]["alias"]["pools"] = {"named"};
    config["routes"]["a/b"] = config["routes"]["m"];
    nlohmann::json narrow;
    narrow["name"] = "narrow";
    narrow["key"] = "GW2";
    narrow["routes"] = {"alias"};
    config["keys"].push_back(narrow);
    return config;
  }
  Reply ask(const std::string& bytes) const { return ask_once(gateway_.port(), bytes); }
  Arrival last_arrival() const { return upstream_.arrivals().back(); }

  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{config_for(upstream_)};
};

TEST_F(Contract, HealthNeedsNoKeyOnBothListeners) {
  for (const char* target : {"/healthz", "/readyz"}) {
    EXPECT_EQ(ask(request("GET", target, {}, {})).status, 200) << target;
    EXPECT_EQ(gateway_.admin_get(target).status, 200) << target;
  }
}

TEST_F(Contract, ModelsAreTheRoutesThatTheKeyMayUse) {
  const auto names = [&](const char* headers) {
    const Reply reply = ask(request("GET", "/v1/models", {}, headers));
    EXPECT_EQ(reply.status, 200) << reply.raw;
    const auto list = nlohmann::json::parse(reply.body, nullptr, false);
    EXPECT_EQ(list.value("object", ""), "list");
    std::vector<std::string> found;
    for (const auto& model : list.at("data")) found.push_back(model.value("id", ""));
    std::sort(found.begin(), found.end());
    return found;
  };
  EXPECT_EQ(names(with_key), (std::vector<std::string>{"a/b", "alias", "m"}));
  EXPECT_EQ(names("Authorization: Bearer GW2\r\n"), std::vector<std::string>{"alias"});
  for (const char* target : {"/v1/models/m", "/v1/models/a%2Fb", "/v1/models/a/b"}) {
    const Reply one = ask(request("GET", target, {}, with_key));
    EXPECT_EQ(one.status, 200) << target;
    EXPECT_EQ(nlohmann::json::parse(one.body, nullptr, false).value("object", ""), "model") << one.body;
  }
  EXPECT_EQ(ask(request("GET", "/v1/models/none", {}, with_key)).status, 404);
  EXPECT_EQ(ask(request("GET", "/v1/models/m", {}, "Authorization: Bearer GW2\r\n")).status, 404);
  EXPECT_EQ(upstream_.arrival_count(), 0u);
}

TEST_F(Contract, TheOtherOperationsGoThroughTheSameWay) {
  EXPECT_EQ(ask(request("POST", "/v1/completions", R"({"model":"m","prompt":"a"})")).status, 200);
  EXPECT_EQ(last_arrival().target(), "/v1/completions");
  EXPECT_EQ(ask(request("POST", "/v1/embeddings", R"({"model":"m","input":"a"})")).status, 200);
  EXPECT_EQ(last_arrival().target(), "/v1/embeddings");
}

TEST_F(Contract, RequestIdsAreTheCallersIfWellFormed) {
  const std::string longest(128, 'a');
  for (const std::string& id : {std::string("Az09._-"), longest}) {
    EXPECT_EQ(
        ask(chat_request(chat_body(false), headers_with("x-request-id: " + id + "\r\n"))).head.all("x-request-id"),
        std::vector<std::string>{id});
    EXPECT_EQ(last_arrival().head.all("x-request-id"), std::vector<std::string>{id});
  }
  std::vector<std::string> made;
  for (const std::string& line :
       {std::string(), "x-request-id: " + longest + "a\r\n", std::string("x-request-id: a b\r\n"),
        std::string("x-request-id: a/b\r\n"), std::string("x-request-id:\r\n")}) {
    const Reply reply = ask(chat_request(chat_body(false), headers_with(line)));
    ASSERT_EQ(reply.head.all("x-request-id").size(), 1u) << reply.raw;
    made.push_back(reply.head.get("x-request-id"));
    EXPECT_FALSE(made.back().empty());
    EXPECT_EQ(last_arrival().head.all("x-request-id"), std::vector<std::string>{made.back()});
    EXPECT_EQ(line.find(": " + made.back() + "\r\n"), std::string::npos);
  }
  std::sort(made.begin(), made.end());
  EXPECT_EQ(std::unique(made.begin(), made.end()), made.end()) << "made ids must differ";
  const Reply refused = ask(chat_request(chat_body(false, "nowhere"), headers_with("x-request-id: mine\r\n")));
  EXPECT_EQ(refused.head.get("x-request-id"), "mine");
}

TEST_F(Contract, AnswersSayWhoMadeThem) {
  upstream_.set_script(
      always(plain_reply(200, good_body("m"),
                         "x-request-id: theirs\r\nx-headgate-backend: theirs\r\nx-ratelimit-limit-requests: 9\r\n"
                         "Access-Control-Allow-Origin: *\r\nServer: model/1\r\nx-model-note: kept\r\n")));
  const Reply reply = ask(chat_request(chat_body(false), headers_with("x-request-id: mine\r\n")));
  EXPECT_EQ(reply.head.all("x-request-id"), std::vector<std::string>{"mine"});
  EXPECT_EQ(reply.head.all("x-headgate-backend"), std::vector<std::string>{"p/u1"});
  EXPECT_EQ(reply.head.all("x-headgate-attempts"), std::vector<std::string>{"1"});
  ASSERT_EQ(reply.head.all("x-headgate-queue-ms").size(), 1u);
  EXPECT_FALSE(reply.head.has("x-ratelimit-limit-requests"));
  EXPECT_FALSE(reply.head.has("access-control-allow-origin"));
  EXPECT_EQ(reply.head.get("x-model-note"), "kept");
  EXPECT_EQ(reply.head.get("content-type"), "application/json");
  EXPECT_FALSE(reply.head.has("x-headgate-refusal"));
  EXPECT_EQ(reply.body, good_body("m"));
}

TEST_F(Contract, HostBecomesTheBackendsAndPrivateHeadersStop) {
  ask(chat_request(chat_body(false),
                   headers_with("api-key: a\r\nx-headgate-deadline-ms: 20000\r\nx-stainless-lang: js\r\n"
                                "Accept-Encoding: gzip\r\nProxy-Connection: keep-alive\r\nTrailer: x\r\n"
                                "x-kept: 1\r\nUser-Agent: test\r\n")));
  const Head head = last_arrival().head;
  EXPECT_EQ(head.all("host"), std::vector<std::string>{upstream_.authority()});
  for (const char* name : {"api-key", "x-headgate-deadline-ms", "x-stainless-lang", "accept-encoding",
                           "proxy-connection", "trailer", "expect"})
    EXPECT_FALSE(head.has(name)) << name;
  EXPECT_EQ(head.get("x-kept"), "1");
  EXPECT_EQ(head.get("user-agent"), "test");
  EXPECT_EQ(head.get("content-type"), "application/json");
}

// Things that a parse-and-print would change: key order, white space, escapes, large and precise numbers, unknown
// fields, a repeated unknown field, a lone surrogate escape.
const std::string odd_fields =
    "\"z\" : 12345678901234567890123,\"a\":1.10e+2, \"esc\":\"\\u00e9\\/\\ud800\\n\",\"dup\":1,\"dup\":2,\"messages\":"
    "[ {\"role\":\"user\",\"content\":\"caf\xC3\xA9 \\\"m\\\"\",\"model\":\"m\"} ] "
    ",\"nested\":{\"stream\":\"x\",\"deep\":[[[{}]]]}";

TEST_F(Contract, UnknownFieldsAndLargeNumbersGoThroughByteForByte) {
  const std::string body = "{ \"model\" : \"m\"," + odd_fields + "\t}\r\n";
  const Reply reply = ask(chat_request(body));
  EXPECT_EQ(reply.status, 200) << reply.raw;
  EXPECT_EQ(last_arrival().body, body);
  EXPECT_EQ(last_arrival().head.get("content-length"), std::to_string(body.size()));
}

TEST_F(Contract, AnAliasChangesTheModelsValueAndNothingElse) {
  for (const std::string& name : {std::string("\"model\""), std::string("\"mod\\u0065l\"")}) {
    const std::string before = "{ " + odd_fields + "," + name + " : ", after = " , \"last\":null}";
    const Reply reply = ask(chat_request(before + "\"alias\"" + after));
    EXPECT_EQ(reply.status, 200) << reply.raw;
    EXPECT_EQ(last_arrival().body, before + "\"real-name\"" + after);
    EXPECT_EQ(last_arrival().head.get("content-length"), std::to_string(last_arrival().body.size()));
  }
}

TEST_F(Contract, ChunkedRequestsArriveWhole) {
  const std::string body = chat_body(false);
  RawClient client(gateway_.port());
  std::vector<std::string> pieces{
      "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer GW1\r\nTransfer-Encoding: "
      "chunked\r\n\r\n"};
  for (const char byte : body) pieces.push_back(chunk(std::string(1, byte)));
  pieces.push_back("0\r\nx-trailer: 1\r\n\r\n");
  client.send_pieces(pieces, 0ms);
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(last_arrival().body, body);
  EXPECT_EQ(last_arrival().raw.find("x-trailer"), std::string::npos);
  EXPECT_EQ(last_arrival().head.has("content-length") + last_arrival().head.has("transfer-encoding"), 1);
}

TEST_F(Contract, PipelinedRequestsAreAnsweredInOrder) {
  RawClient client(gateway_.port());
  std::string burst;
  for (int n = 0; n < 8; ++n)
    burst += chat_request(chat_body(n % 2 == 1), headers_with("x-request-id: n" + std::to_string(n) + "\r\n"));
  client.send(burst);
  for (int n = 0; n < 8; ++n) {
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.complete);
    EXPECT_EQ(reply.head.get("x-request-id"), "n" + std::to_string(n));
  }
}

TEST_F(Contract, OldCallersAreServedAndTheirConnectionsClosed) {
  RawClient old(gateway_.port());
  const std::string body = chat_body(false);
  const std::string tail =
      "Authorization: Bearer GW1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  EXPECT_EQ(old.ask("POST /v1/chat/completions HTTP/1.0\r\n" + tail).status, 200);
  EXPECT_TRUE(old.closed_by_peer(scaled(2s)));
  RawClient streamed(gateway_.port());
  const std::string asks = chat_body(true);
  const Reply reply =
      streamed.ask("POST /v1/chat/completions HTTP/1.0\r\nAuthorization: Bearer GW1\r\nContent-Length: " +
                   std::to_string(asks.size()) + "\r\n\r\n" + asks);
  EXPECT_FALSE(reply.head.has("transfer-encoding")) << "HTTP/1.0 knows no chunks";
  EXPECT_EQ(content_of(reply.body), "one two three four five");
  EXPECT_TRUE(reply.closed);
  RawClient closing(gateway_.port());
  EXPECT_EQ(closing.ask(chat_request(body, headers_with("Connection: close\r\n"))).status, 200);
  EXPECT_TRUE(closing.closed_by_peer(scaled(2s)));
}

// One who asks for it is kept, and told so.
TEST_F(Contract, OldCallersMayKeepTheirConnection) {
  RawClient old(gateway_.port());
  const auto with_body = [](const std::string& body) {
    return "POST /v1/chat/completions HTTP/1.0\r\nConnection: keep-alive\r\nAuthorization: Bearer GW1\r\n"
           "Content-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  for (const auto& [body, status] : {std::pair{chat_body(false), 200}, {"{", 400}, {chat_body(false), 200}}) {
    const Reply reply = old.ask(with_body(body));
    EXPECT_EQ(reply.status, status) << reply.raw;
    EXPECT_EQ(reply.head.all("connection"), std::vector<std::string>{"keep-alive"}) << reply.raw;
  }
  EXPECT_EQ(old.ask(with_body(chat_body(true))).head.get("connection"), "close") << "a stream ends with it";
}

// As a proxy is asked; a backend is asked by path.
TEST_F(Contract, ATargetMayNameItsServer) {
  const std::string body = chat_body(false);
  EXPECT_EQ(ask(request("POST", "http://gateway.test/v1/chat/completions?a=b", body)).status, 200);
  EXPECT_EQ(last_arrival().target(), "/v1/chat/completions?a=b");
  const std::string pad(5000, ' ');  // the head is read twice when its body needs a larger buffer
  EXPECT_EQ(ask(request("POST", "HTTPS://gateway.test:8/v1/chat/completions", pad + body + std::string(60 << 10, ' ')))
                .status,
            200);
  EXPECT_EQ(last_arrival().target(), "/v1/chat/completions");
  EXPECT_EQ(ask(request("GET", "http://gateway.test/v1/models")).status, 200);
  EXPECT_EQ(ask(request("GET", "http://gateway.test", {}, with_key)).status, 404);
}

// A stream is counted, so usage is asked for; who did not ask does not see the event with no choice.
TEST_F(Contract, UsageIsAskedForAndShownToThoseWhoAsked) {
  struct Case {
    const char* extra;
    std::size_t events, usage_events;
  };
  for (const auto& [extra, events, usage_events] : {Case{"", 8, 0},
                                                    {R"(,"stream_options":{"include_usage":false})", 8, 0},
                                                    {R"(,"stream_options":null)", 8, 0},
                                                    {R"(,"stream_options":{})", 8, 0},
                                                    {R"(,"stream_options":{"include_usage":true})", 9, 1}}) {
    const Reply reply = ask(chat_request(chat_body(true, "m", extra)));
    EXPECT_EQ(reply.status, 200) << extra << reply.raw;
    EXPECT_EQ(last_arrival().json()["stream_options"]["include_usage"], true) << last_arrival().body;
    const auto payloads = data_of(reply.body);
    EXPECT_EQ(payloads.size(), events) << extra << "\n" << reply.body;
    std::size_t empty = 0;
    for (const std::string& payload : payloads) empty += payload.find("\"choices\":[]") != std::string::npos;
    EXPECT_EQ(empty, usage_events) << extra;
    EXPECT_EQ(last_data_of(reply.body), "[DONE]");
  }
  EXPECT_EQ(ask(chat_request(chat_body(false))).status, 200);
  EXPECT_FALSE(last_arrival().json().contains("stream_options"));
  for (const auto& line : gateway_.access_lines(6)) {
    EXPECT_EQ(line.value("in", -1), 7);
    EXPECT_EQ(line.value("out", -1), 5);
    EXPECT_EQ(line.value("estimated", true), false);
  }
}

TEST_F(Contract, CommentsAndFieldsOfAStreamGoThrough) {
  const std::string head_part = ": first\n\nevent: note\nid: 7\nretry: 100\n" + content_event("one");
  const std::string rest = ": between\n\n" + finish_event() + ": last\n\n" + done_event();
  upstream_.set_script([&](Exchange& x) {
    x.write(stream_head("Cache-Control: max-age=9\r\n") + chunk(head_part) + chunk(rest));
    x.write_last(final_chunk());
  });
  const Reply reply = ask(chat_request(chat_body(true)));
  EXPECT_EQ(reply.body, head_part + rest);
  EXPECT_NE(reply.head.get("cache-control").find("no-cache"), std::string::npos);
}

// An upstream that reports no usage, or packs its answer unasked: it passes, and is counted as an estimate.
TEST_F(Contract, WhatCannotBeReadIsPassedAndCountedAsAnEstimate) {
  upstream_.set_script(always(plain_reply(200, "\x1f\x8b not really", "Content-Encoding: gzip\r\n")));
  const Reply packed = ask(chat_request(chat_body(false)));
  EXPECT_EQ(packed.status, 200);
  EXPECT_EQ(packed.body, "\x1f\x8b not really");
  EXPECT_EQ(packed.head.get("content-encoding"), "gzip");
  upstream_.set_script([](Exchange& x) {
    x.write(stream_head());
    for (const std::string& event : good_events("m", false)) x.write(chunk(event));
    x.write_last(final_chunk());
  });
  EXPECT_EQ(ask(chat_request(chat_body(true))).status, 200);
  const auto lines = gateway_.access_lines(2);
  EXPECT_EQ(lines[0].value("estimated", false), true);
  EXPECT_EQ(lines[1].value("estimated", false), true);
  EXPECT_GT(lines[1].value("out", 0), 0);
}

TEST_F(Contract, InterimAnswersAreSwallowed) {
  upstream_.set_script([](Exchange& x) {
    for (int n = 0; n < 16; ++n) x.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    x.write_last(plain_reply(200, good_body("m")));
  });
  const Reply reply = ask(chat_request(chat_body(false)));
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.head.has("link"));
}

TEST_F(Contract, AnswersThatMakeNoSenseToAPostBecome502) {
  for (const char* start : {"101 Switching Protocols", "204 No Content", "301 Moved", "304 Not Modified"}) {
    ScriptedUpstream odd([=](Exchange& x) {
      x.write_last(std::string("HTTP/1.1 ") + start + "\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n");
    });
    GatewayProcess gateway(basic_config({&odd}));
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
    EXPECT_EQ(reply.status, 502) << start << reply.raw;
    EXPECT_EQ(plain_error_fault(reply), "");
    EXPECT_FALSE(reply.head.has("location"));
  }
}

// One upstream, one answer, one reply of a fresh gateway (failures of an earlier one would count).
Reply reply_to(const std::string& answer) {
  ScriptedUpstream upstream(always(answer));
  GatewayProcess gateway(basic_config({&upstream}));
  return ask_once(gateway.port(), chat_request(chat_body(false)));
}

TEST(ContractErrors, AnErrorThatIsNotJsonGetsAFixedMessage) {
  const Reply reply = reply_to(plain_reply(500, "<html>worker 7 died</html>", "Retry-After: 3\r\n", "text/html"));
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(plain_error_fault(reply), "");
  EXPECT_EQ(error_code_of(reply), "upstream_status");
  EXPECT_EQ(reply.body.find("worker"), std::string::npos);
  EXPECT_EQ(reply.head.get("retry-after"), "3");
}

TEST(ContractErrors, AnErrorInJsonGoesThroughUnchanged) {
  const std::string body = R"({"detail" : "busy", "n":12345678901234567890})";
  const Reply with_advice = reply_to(plain_reply(503, body, "Retry-After: 2\r\nx-should-retry: true\r\n"));
  EXPECT_EQ(with_advice.status, 503);
  EXPECT_EQ(with_advice.body, body);
  EXPECT_EQ(with_advice.head.get("retry-after"), "2");
  EXPECT_EQ(with_advice.head.get("x-should-retry"), "true");
  EXPECT_FALSE(with_advice.head.has("x-headgate-refusal"));
  const Reply without = reply_to(plain_reply(503, body));
  EXPECT_EQ(without.body, body);
  EXPECT_FALSE(without.head.has("retry-after")) << "absent stays absent";
}

// The backend's address or key in an error body is replaced by a fixed message, whosever fault it is.
TEST(ContractErrors, AnErrorThatNamesTheBackendIsReplaced) {
  for (const int status : {400, 422, 429, 500}) {
    for (const bool key : {false, true}) {
      Script script = [=](Exchange& x) {
        const std::string secret = key ? "Bearer K1" : x.arrival().head.get("host");
        x.write_last(plain_reply(status, R"({"error":{"message":"at )" + secret + R"( it failed","code":"x"}})"));
      };
      ScriptedUpstream upstream(script);
      GatewayProcess gateway(basic_config({&upstream}));
      const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
      EXPECT_EQ(reply.status, status);
      EXPECT_EQ(plain_error_fault(reply), "");
      EXPECT_EQ(reply.raw.find(upstream.authority()), std::string::npos) << reply.raw;
      EXPECT_EQ(reply.raw.find("K1"), std::string::npos) << reply.raw;
    }
  }
}

TEST(ContractErrors, ARefusalOfOurOwnCredentialsIs502) {
  for (const int status : {401, 402, 403, 407}) {
    const Reply reply = reply_to(plain_reply(status, R"({"error":{"message":"bad key","type":"a","code":"b"}})"));
    EXPECT_EQ(reply.status, 502);
    EXPECT_EQ(plain_error_fault(reply), "");
    EXPECT_EQ(error_code_of(reply), "upstream_auth");
  }
}

TEST(ContractErrors, AnAnswerWithoutAWholeHeadIs502) {
  ScriptedUpstream upstream([](Exchange& x) {
    x.write("SSH-2.0-OpenSSH_9\r\n\r\n");
    x.close();
  });
  GatewayProcess gateway(basic_config({&upstream}));
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
  EXPECT_EQ(reply.status, 502);
  EXPECT_EQ(error_code_of(reply), "upstream_failed");
  EXPECT_EQ(reply.head.get("x-should-retry"), "false");
}

TEST(ContractErrors, AnInBandErrorOfAPlainAnswerIsNotA200) {
  const Reply failed = reply_to(plain_reply(200, R"({"error":{"message":"no","type":"server_error","code":"boom"}})"));
  EXPECT_EQ(failed.status, 502);
  EXPECT_EQ(plain_error_fault(failed), "");
  const Reply busy =
      reply_to(plain_reply(200, R"({"error":{"message":"no","type":"server_error","code":"overloaded"}})"));
  EXPECT_EQ(busy.status, 503);
}

// A pool that does not report usage is not asked to.
TEST(ContractErrors, APoolThatReportsNoUsageIsNotAskedForIt) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["pools"]["p"]["reports_usage"] = false;
  GatewayProcess gateway(config);
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(true))).status, 200);
  EXPECT_FALSE(upstream.arrivals().at(0).json().contains("stream_options"));
  EXPECT_EQ(gateway.access_lines(1)[0].value("estimated", false), true);
}

}  // namespace
}  // namespace headgate::support
