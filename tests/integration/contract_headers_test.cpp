// What HTTP.md promises of header lines: which stop at the gateway in each direction, and which it adds.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

std::string error_body(const std::string& message) {
  return R"({"error":{"message":")" + message + R"(","type":"a","param":null,"code":"b"}})";
}

// Every header that belongs to one connection only, and what Connection lists, in any case and over several lines.
const std::string hop_lines =
    "Connection: close, X-Listed\r\nConnection: keep-alive , x-also\r\nx-listed: 1\r\nX-ALSO: 1\r\nTE: trailers\r\n"
    "Trailer: x-t\r\nUpgrade: h2c\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nProxy-Authorization: a\r\n"
    "Proxy-Connection: close\r\nProxy-Other: 1\r\n";
const std::vector<std::string> hop_names{"x-listed",
                                         "x-also",
                                         "te",
                                         "trailer",
                                         "upgrade",
                                         "keep-alive",
                                         "proxy-authenticate",
                                         "proxy-authorization",
                                         "proxy-connection",
                                         "proxy-other"};

TEST(ContractHeaders, HopByHopLinesStopInBothDirections) {
  ScriptedUpstream upstream([](Exchange& x) {
    const std::string lines = hop_lines + "x-kept: 1\r\nVary: Accept\r\n";
    if (!x.arrival().json().value("stream", false))
      return static_cast<void>(x.write_last(plain_reply(200, good_body("m"), lines)));
    x.write(stream_head(lines));
    for (const std::string& event : good_events("m", true)) x.write(chunk(event));
    x.write_last(final_chunk());
  });
  GatewayProcess gateway(basic_config({&upstream}));
  for (const bool stream : {false, true}) {
    const Reply reply =
        ask_once(gateway.port(), chat_request(chat_body(stream), headers_with(hop_lines + "x-kept: 1\r\n")));
    ASSERT_EQ(reply.status, 200) << reply.raw;
    const Head asked = upstream.arrivals().back().head;
    for (const std::string& name : hop_names) {
      EXPECT_FALSE(asked.has(name)) << name;
      EXPECT_FALSE(reply.head.has(name)) << name;
    }
    EXPECT_EQ(asked.get("x-kept") + reply.head.get("x-kept"), "11");
    EXPECT_EQ(reply.head.get("vary"), "Accept");
    for (const Head& head : {asked, reply.head})
      EXPECT_EQ(head.get("connection").find("isted"), std::string::npos) << head.raw;
  }
}

constexpr const char* every_credential =
    "Authorization: Bearer GW1\r\nx-api-key: GW1\r\napi-key: GW1\r\nCookie: s=GW1\r\nProxy-Authorization: GW1\r\n"
    "x-headgate-session: GW1\r\nx-stainless-lang: GW1\r\n";

// A pool without a key of its own gets no key at all.
TEST(ContractHeaders, CredentialsStopAlsoWhereThePoolHasNoKey) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["pools"]["p"].erase("api_key");
  GatewayProcess gateway(config);
  ASSERT_EQ(ask_once(gateway.port(), chat_request(chat_body(false), every_credential)).status, 200);
  EXPECT_FALSE(upstream.arrivals().at(0).head.has("authorization"));
  EXPECT_EQ(upstream.arrivals().at(0).raw.find("GW1"), std::string::npos) << upstream.arrivals().at(0).raw;
}

// Where the caller's credentials go on, the backend's opinion of them is the caller's business; nothing else goes on.
TEST(ContractHeaders, ForwardedCredentialsAreTheCallersOwn) {
  ScriptedUpstream upstream(good_answer()), other(good_answer());
  auto config = basic_config({&upstream, &other});
  config["pools"]["p"].erase("api_key");
  config["pools"]["p"]["forward_client_auth"] = true;
  config["routes"]["m"]["retry"]["attempts_max"] = 2;
  for (const int status : {200, 401, 403}) {
    const std::string body = error_body("no such key");
    if (status != 200) upstream.set_script(always(plain_reply(status, body)));
    GatewayProcess gateway(config);
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false), every_credential));
    EXPECT_EQ(reply.status, status) << reply.raw;
    EXPECT_EQ(reply.body, status == 200 ? good_body("m") : body);
    const Head head = upstream.arrivals().back().head;
    EXPECT_EQ(head.all("authorization"), std::vector<std::string>{"Bearer GW1"});
    EXPECT_EQ(head.get("x-api-key") + head.get("api-key"), "GW1GW1");
    for (const char* name : {"cookie", "proxy-authorization", "x-headgate-session", "x-stainless-lang"})
      EXPECT_FALSE(head.has(name)) << name;
    EXPECT_EQ(gateway.metric("headgate_attempt_failures_total"), 0);
  }
  EXPECT_EQ(other.arrival_count(), 0u) << "a caller's fault is not tried elsewhere";
}

TEST(ContractHeaders, ABackendsAddressAndKeyStayOutOfTheHead) {
  ScriptedUpstream upstream([](Exchange& x) {
    const std::string here = "http://" + x.arrival().head.get("host");
    const std::string lines = "Content-Location: " + here + "/v1\r\nx-upstream-key: K1\r\nServer: K1\r\nx-kept: 1\r\n";
    std::string reply = plain_reply(x.arrival().number == 0 ? 200 : 400, good_body("m"), lines);
    const std::size_t reason = std::string_view("HTTP/1.1 200 ").size();
    x.write_last(reply.replace(reason, reply.find("\r\n") - reason, here + " K1"));
  });
  GatewayProcess gateway(basic_config({&upstream}));
  for (const int status : {200, 400}) {
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(reply.head.get("x-kept"), "1");
    EXPECT_EQ(reply.raw.find(upstream.authority()), std::string::npos) << reply.head.raw;
    EXPECT_EQ(reply.raw.find("K1"), std::string::npos) << reply.head.raw;
  }
}

// The last attempt's own error too; and what a reader of JSON sees counts as much as what stands there.
TEST(ContractHeaders, ABackendsAddressAndKeyStayOutOfErrorBodies) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["pools"]["p"]["api_key"] = "sk-backend-key";
  config["pools"]["p"]["health"]["consecutive_failures"] = 100;
  GatewayProcess gateway(config);
  const std::vector<std::string> secrets{
      "sk-backend-key", R"(sk\u002dbackend\u002Dkey)", R"(\u0073k-backend-key)",
      R"(http:\/\/127\u002e0.0.1\u003a)" + std::to_string(upstream.port()) + R"(\/v1)"};
  for (const int status : {400, 500}) {
    for (const std::string& secret : secrets) {
      upstream.set_script(always(plain_reply(status, error_body("at " + secret + " it failed"))));
      const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
      EXPECT_EQ(reply.status, status) << reply.raw;
      EXPECT_EQ(error_code_of(reply), "upstream_status") << reply.raw;
      EXPECT_EQ(reply.body.find("it failed"), std::string::npos) << reply.raw;
    }
    const std::string harmless = error_body(R"(a \"word\" of \u00e9 and C:\\u)");
    upstream.set_script(always(plain_reply(status, harmless)));
    EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false))).body, harmless);
  }
}

// What is too long to be searched is not shown at all.
TEST(ContractHeaders, AnErrorBodyIsSearchedOrNotShown) {
  ScriptedUpstream upstream(good_answer());
  GatewayProcess gateway(basic_config({&upstream}));
  for (const std::size_t size : {std::size_t{200 << 10}, std::size_t{2 << 20}}) {
    for (const char* end : {"no secret", "K1"}) {
      const std::string body = error_body(std::string(size, 'x') + end);
      upstream.set_script(always(plain_reply(400, body)));
      const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
      EXPECT_EQ(reply.status, 400);
      const bool shown = size == 200 << 10 && end[0] == 'n';
      EXPECT_EQ(error_code_of(reply), shown ? "b" : "upstream_status");
      EXPECT_EQ(reply.body == body, shown);
    }
  }
}

TEST(ContractHeaders, EveryAnswerHasItsRequestId) {
  ScriptedUpstream upstream(good_answer());
  GatewayProcess gateway(basic_config({&upstream}));
  struct Case {
    int status;
    std::string bytes;
  };
  const std::string id = headers_with("x-request-id: mine\r\n");
  const std::vector<Case> cases{{200, chat_request(chat_body(false), id)},
                                {200, chat_request(chat_body(true), id)},
                                {200, request("GET", "/healthz", {}, id)},
                                {200, request("GET", "/readyz", {}, id)},
                                {200, request("GET", "/v1/models", {}, id)},
                                {200, request("GET", "/v1/models/m", {}, id)},
                                {404, request("GET", "/v1/models/none", {}, id)},
                                {404, request("GET", "/nothing", {}, id)},
                                {405, request("PUT", "/v1/models", {}, id)},
                                {400, chat_request("{", id)},
                                {401, chat_request(chat_body(false), "x-request-id: mine\r\n")}};
  for (const auto& [status, bytes] : cases) {
    const Reply reply = ask_once(gateway.port(), bytes);
    EXPECT_EQ(reply.status, status) << bytes;
    EXPECT_EQ(reply.head.all("x-request-id"), std::vector<std::string>{"mine"}) << reply.raw;
  }
}

// Whatever a backend said or failed to say, the caller can see who it was and after how many attempts; of a refusal
// that no backend had part in, nothing.
TEST(ContractHeaders, AnswersThatABackendHadPartInNameIt) {
  const std::string json = error_body("no"), ours = error_body("bad key");
  struct Case {
    const char* name;
    int status;
    bool stream;
    Script script;
  };
  const std::vector<Case> cases{{"stream", 200, true, good_answer()},
                                {"caller's fault", 422, false, always(plain_reply(422, json))},
                                {"its own error", 500, false, always(plain_reply(500, json))},
                                {"not JSON", 500, false, always(plain_reply(500, "x", {}, "text/html"))},
                                {"our credentials", 502, false, always(plain_reply(401, ours))},
                                {"in-band", 502, false, always(plain_reply(200, json))},
                                {"no answer", 502, true, [](Exchange& x) { x.close(); }}};
  for (const auto& [name, status, stream, script] : cases) {
    SCOPED_TRACE(name);
    ScriptedUpstream upstream(script);
    GatewayProcess gateway(basic_config({&upstream}));
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(stream)));
    EXPECT_EQ(reply.status, status) << reply.raw;
    EXPECT_EQ(reply.head.all("x-headgate-backend"), std::vector<std::string>{"p/u1"});
    EXPECT_EQ(reply.head.all("x-headgate-attempts"), std::vector<std::string>{"1"});
    EXPECT_EQ(reply.head.all("x-headgate-queue-ms").size(), 1u);
    EXPECT_FALSE(reply.head.has("x-headgate-refusal"));
    const Reply refused = ask_once(gateway.port(), chat_request(chat_body(stream, "nowhere")));
    for (const char* line : {"x-headgate-backend", "x-headgate-attempts", "x-headgate-queue-ms"})
      EXPECT_FALSE(refused.head.has(line)) << line;
  }
}

// 7 tokens in, 5 out, at 2 and 8 dollars a million: 14 + 40 millionths. Streams and pools without a price: no word of
// it.
TEST(ContractHeaders, CostIsNamedOnWholeAnswersOfPoolsWithAPrice) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  {
    GatewayProcess unpriced(config);
    EXPECT_FALSE(ask_once(unpriced.port(), chat_request(chat_body(false))).head.has("x-headgate-cost-usd"));
  }
  config["pools"]["p"]["price"] = {{"input", 2.0}, {"output", 8.0}};
  GatewayProcess gateway(config);
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false))).head.get("x-headgate-cost-usd"), "0.000054000");
  EXPECT_FALSE(ask_once(gateway.port(), chat_request(chat_body(true))).head.has("x-headgate-cost-usd"));
}

// One slot, held for 300 ms after the second request has joined the queue.
TEST(ContractHeaders, QueueMsIsTheTimeInTheQueue) {
  Event release;
  const Script good = good_answer();
  ScriptedUpstream upstream([&](Exchange& x) {
    if (x.arrival().number > 0 || (x.wait_for(release) && x.wait(300ms))) good(x);
  });
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 1;
  GatewayProcess gateway(config);
  RawClient first(gateway.port()), second(gateway.port());
  first.send(chat_request(chat_body(false)));
  ASSERT_TRUE(upstream.await_arrivals(1));
  second.send(chat_request(chat_body(false)));
  ASSERT_TRUE(eventually(10s, [&] { return gateway.metric("headgate_queued", {{"pool", "p"}}) == 1; }));
  release.set();
  EXPECT_EQ(first.read_reply().head.get("x-headgate-queue-ms"), "0");
  const Reply waited = second.read_reply();
  EXPECT_EQ(waited.status, 200);
  EXPECT_GE(std::atoi(waited.head.get("x-headgate-queue-ms").c_str()), 300);
  EXPECT_LE(std::atoi(waited.head.get("x-headgate-queue-ms").c_str()), to_ms(waited.took()));
}

}  // namespace
}  // namespace headgate::support
