// What HTTP.md promises of attempts that fail: whose fault each is, what is tried again, what the caller gets.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

const std::string json = R"({"error" : {"message":"no","type":"a","param":null,"code":"b","n":12345678901234567890}})";
constexpr const char* advice =
    "Retry-After: Fri, 31 Dec 2032 23:59:59 GMT\r\nretry-after-ms: 1500\r\nx-should-retry: true\r\n";

Script status(int code) { return always(plain_reply(code, json)); }
Script plain_200(std::string body) { return always(plain_reply(200, body)); }
// The bytes as they are, then an orderly end of the connection.
Script raw(std::string bytes) {
  return [bytes = std::move(bytes)](Exchange& x) {
    x.write(bytes);
    x.close();
  };
}
// A stream that ends in good order after these events.
Script events(std::string text) { return always(stream_head() + chunk(text) + final_chunk()); }

// One request with `script` first and a good backend behind it.
struct Tried {
  Reply reply;
  std::size_t elsewhere;
  double failures;
};
Tried try_first(const Script& script, bool stream) {
  ScriptedUpstream one(script), two(good_answer());
  auto config = chain_config({&one, &two});
  config["routes"]["m"]["retry"]["attempts_max"] = 2;
  GatewayProcess gateway(config);
  Tried tried;
  tried.reply = ask_once(gateway.port(), chat_request(chat_body(stream)));
  tried.elsewhere = two.arrival_count();
  tried.failures = gateway.metric("headgate_attempt_failures_total", {{"backend", "p1/u1"}});
  EXPECT_EQ(one.arrival_count(), 1u);
  return tried;
}

struct Failing {
  const char* name;
  bool stream;
  Script script;
};

// Ours, load and hard: the other backend answers, the caller notices nothing, one failed attempt is counted.
TEST(ContractOutcomes, WhatIsNotTheCallersFaultFailsOver) {
  std::vector<Failing> cases{
      {"in-band error", false, plain_200(json)},
      {"an answer that is not the JSON it claims to be", false, plain_200("{\"half\":")},
      {"a short answer", false, raw("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhalf")},
      {"no answer", false, raw("")},
      {"half a head", false, raw("HTTP/1.1 200 OK\r\nContent-")},
      {"not HTTP", false, raw("SSH-2.0\r\n\r\n")},
      {"broken chunks", false, raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n")},
      {"two lengths", false, raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}")},
      {"a head over 64 KiB", false, always(plain_reply(200, json, "x-w: " + std::string(70 << 10, 'w') + "\r\n"))},
      {"a stream without events", true, events("")},
      {"a stream that ends before its content", true, events(role_event())},
      {"a stream cut before its content", true, raw(stream_head() + chunk(role_event()))},
      {"an error event", true, events(role_event() + error_event("server_error"))},
      {"an error event and [DONE]", true, events(role_event() + error_event("server_error") + done_event())},
  };
  for (const int code : {401, 402, 403, 407, 429, 503, 529, 500, 501, 502, 504, 201, 202, 204, 206, 301})
    cases.push_back({"a status", code % 2 == 0, status(code)});
  for (const auto& [name, stream, script] : cases) {
    const Tried tried = try_first(script, stream);
    SCOPED_TRACE(std::string(name) + ": " + tried.reply.raw);
    EXPECT_EQ(tried.reply.status, 200);
    EXPECT_EQ(tried.elsewhere, 1u);
    EXPECT_EQ(tried.reply.head.get("x-headgate-backend"), "p2/u2");
    EXPECT_EQ(tried.reply.head.get("x-headgate-attempts"), "2");
    EXPECT_EQ(tried.reply.body.find("\"error\""), std::string::npos);
    EXPECT_NE(tried.reply.body.find("five"), std::string::npos);
    EXPECT_EQ(tried.failures, 1);
  }
}

// The caller's: status, advice and body as received, JSON or not, streamed or not; nobody else is asked and nothing is
// held against the backend.
TEST(ContractOutcomes, TheCallersFaultGoesThroughAsItIs) {
  ScriptedUpstream one(silent()), two(good_answer());
  auto config = chain_config({&one, &two});
  config["routes"]["m"]["retry"]["attempts_max"] = 2;
  config["pools"]["p1"]["health"]["consecutive_failures"] = 1;
  GatewayProcess gateway(config);
  RawClient client(gateway.port());
  for (const int code : {400, 404, 405, 408, 409, 413, 415, 418, 422, 451}) {
    for (const std::string type : {"application/json", "text/plain", "text/event-stream"}) {
      SCOPED_TRACE(std::to_string(code) + " " + type);
      const std::string body = type == "application/json" ? json : "no: \xff";
      one.set_script(always(plain_reply(code, body, advice, type)));
      const Reply reply = client.ask(chat_request(chat_body(code % 2 == 0)));
      EXPECT_EQ(reply.status, code) << reply.raw;
      EXPECT_EQ(reply.body, body);
      EXPECT_EQ(reply.head.get("content-type"), type);
      EXPECT_EQ(reply.head.get("retry-after"), "Fri, 31 Dec 2032 23:59:59 GMT");
      EXPECT_EQ(reply.head.get("retry-after-ms"), "1500");
      EXPECT_EQ(reply.head.get("x-should-retry"), "true");
    }
  }
  EXPECT_EQ(one.arrival_count(), 30u);
  EXPECT_EQ(two.arrival_count(), 0u);
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total"), 0);
  EXPECT_EQ(gateway.metric("headgate_health_changes_total"), 0);
}

// One upstream, one reply of a fresh gateway (failures of an earlier one would count).
Reply reply_to(const Script& script, bool stream = false) {
  ScriptedUpstream upstream(script);
  GatewayProcess gateway(basic_config({&upstream}));
  return ask_once(gateway.port(), chat_request(chat_body(stream)));
}

// Where the backend's body may not be shown its advice still goes through, and no advice is made up.
TEST(ContractOutcomes, AFixedMessageKeepsTheBackendsAdvice) {
  const auto naming = [](int code, const std::string& lines) -> Script {
    return [=](Exchange& x) {
      x.write_last(plain_reply(code, "{\"at\":\"" + x.arrival().head.get("host") + "\"}", lines));
    };
  };
  const auto html = [](int code, const std::string& lines) {
    return always(plain_reply(code, "<html>", lines, "text/html"));
  };
  for (const Script& script : {html(500, advice), html(503, advice), naming(429, advice), naming(400, advice)}) {
    const Reply reply = reply_to(script);
    EXPECT_EQ(error_code_of(reply), "upstream_status") << reply.raw;
    EXPECT_EQ(reply.head.all("retry-after"), std::vector<std::string>{"Fri, 31 Dec 2032 23:59:59 GMT"});
    EXPECT_EQ(reply.head.all("retry-after-ms"), std::vector<std::string>{"1500"});
    EXPECT_EQ(reply.head.all("x-should-retry"), std::vector<std::string>{"true"});
  }
  for (const Script& script : {html(500, ""), naming(400, "")}) {
    const Reply reply = reply_to(script);
    EXPECT_EQ(error_code_of(reply), "upstream_status") << reply.raw;
    for (const char* name : {"retry-after", "retry-after-ms", "x-should-retry"})
      EXPECT_FALSE(reply.head.has(name)) << name;
  }
  EXPECT_EQ(reply_to(html(500, "Retry-After: 3\r\n")).head.has("retry-after-ms"), false);
}

TEST(ContractOutcomes, TheLastAttemptsEndIsTheAnswer) {
  const auto in_band = [](const char* code) { return plain_200(std::string(R"({"error":{"code":")") + code + "\"}}"); };
  struct Case {
    const char* name;
    bool stream;
    Script script;
    int status;
    const char *code, *should_retry;
  };
  const std::vector<Case> cases{
      {"in-band", false, in_band("boom"), 502, "upstream_failed", ""},
      {"in-band overloaded", false, in_band("overloaded_error"), 503, "upstream_failed", ""},
      {"in-band rate limit", false, in_band("rate_limit_exceeded"), 503, "upstream_failed", ""},
      {"in-band, streamed", true, events(error_event("boom")), 502, "upstream_failed", ""},
      {"in-band rate limit, streamed", true, events(error_event("rate_limit")), 503, "upstream_failed", ""},
      {"no answer", false, raw(""), 502, "upstream_failed", "false"},
      {"another 2xx", false, status(202), 502, "upstream_failed", "false"},
      {"another 2xx, not JSON", true, always(plain_reply(206, "x", {}, "text/plain")), 502, "upstream_failed", "false"},
      {"17 interim answers", false,
       [](Exchange& x) {
         for (int n = 0; n < 17; ++n) x.write("HTTP/1.1 102 Processing\r\n\r\n");
         x.write_last(plain_reply(200, good_body("m")));
       },
       502, "upstream_failed", "false"},
  };
  for (const auto& [name, stream, script, status, code, should_retry] : cases) {
    const Reply reply = reply_to(script, stream);
    SCOPED_TRACE(std::string(name) + ": " + reply.raw);
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(plain_error_fault(reply), "");
    EXPECT_EQ(error_code_of(reply), code);
    EXPECT_EQ(nlohmann::json::parse(reply.body)["error"]["type"], "upstream_error");
    EXPECT_EQ(reply.head.get("x-should-retry"), should_retry);
    EXPECT_FALSE(reply.head.has("retry-after"));
  }
}

TEST(ContractOutcomes, ALateAnswerIs504) {
  ScriptedUpstream upstream(silent());
  auto config = basic_config({&upstream});
  config["routes"]["m"]["timeouts"]["first_byte"] = "200ms";
  GatewayProcess gateway(config);
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
  EXPECT_EQ(reply.status, 504) << reply.raw;
  EXPECT_EQ(error_code_of(reply), "upstream_timeout");
  EXPECT_NE(reply.body.find("the limit for first_byte is 200 ms"), std::string::npos) << reply.body;
  EXPECT_EQ(reply.head.get("x-should-retry"), "false");
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 1);
}

// Our credentials may be good elsewhere: every pool is asked before the caller is told.
TEST(ContractOutcomes, OurOwnCredentialsAreTriedEverywhere) {
  ScriptedUpstream one(status(401)), two(status(403));
  auto config = chain_config({&one, &two});
  config["routes"]["m"]["retry"]["attempts_max"] = 5;
  GatewayProcess gateway(config);
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
  EXPECT_EQ(reply.status, 502) << reply.raw;
  EXPECT_EQ(error_code_of(reply), "upstream_auth");
  EXPECT_EQ(reply.head.get("x-should-retry"), "false");
  EXPECT_EQ(one.arrival_count(), 1u);
  EXPECT_EQ(two.arrival_count(), 1u);
}

// Load cools the backend down and is no fault: the next request is refused with what is left of the cooldown.
TEST(ContractOutcomes, LoadIsACooldown) {
  const std::vector<Script> busy{always(plain_reply(529, json, "Retry-After: 20\r\n")),
                                 always(plain_reply(503, json, "Retry-After: 20\r\n"))};
  for (const Script& script : busy) {
    ScriptedUpstream upstream(script);
    auto config = basic_config({&upstream});
    config["pools"]["p"]["health"]["consecutive_failures"] = 1;
    GatewayProcess gateway(config);
    ask_once(gateway.port(), chat_request(chat_body(false)));
    const Reply refused = ask_once(gateway.port(), chat_request(chat_body(false)));
    EXPECT_EQ(error_code_of(refused), "no_healthy_backend") << refused.raw;
    EXPECT_LE(std::atoi(refused.head.get("retry-after").c_str()), 20);
    EXPECT_GE(std::atoi(refused.head.get("retry-after").c_str()), 15);
    EXPECT_EQ(upstream.arrival_count(), 1u);
    EXPECT_EQ(gateway.metric("headgate_ejections_total", {{"backend", "p/u1"}}), 0);
  }
}

}  // namespace
}  // namespace headgate::support
