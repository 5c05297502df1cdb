// What a refusal says: case RW-15.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

const std::string upstream_key = "upstream-key-7c1f", caller_key = "caller-key-90d2", wrong_key = "wrong-key-33ab";
const std::string with_caller_key = "Authorization: Bearer " + caller_key + "\r\n";

// One pool of one upstream for each letter, and a route of the letter's name to it.
nlohmann::json config_of(const std::vector<std::pair<std::string, std::uint16_t>>& upstreams) {
  auto config = basic_config({});
  const nlohmann::json pool = config["pools"]["p"], route = config["routes"]["m"];
  config.erase("pools");
  config.erase("routes");
  for (const auto& [letter, port] : upstreams) {
    config["pools"][letter] = pool;
    config["pools"][letter]["api_key"] = upstream_key;
    config["pools"][letter]["backends"] = nlohmann::json::array({backend_config("u", port, 1)});
    config["routes"][letter] = route;
    config["routes"][letter]["pools"] = {letter};
  }
  config["keys"][0]["key"] = caller_key;
  return config;
}

int seconds(const Reply& reply) {
  const std::string text = reply.head.get("retry-after");
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos ? std::stoi(text) : -1;
}

// Stage: (a) slot and queue full, (b) the only upstream out, (c) its port refuses, (d) its first line is not HTTP, (e)
// it exceeds the attempt's limit, (f) unknown model, (g) broken JSON, (h) no or wrong key. Statuses: 503 (our choice)
// and 503, both with Retry-After >= 1; 502, 502, 504, 404, 400, 401; never 500. All plain errors, codes of a, b, e and
// f differ, and no body gives an upstream's address or key or the caller's key away.
TEST(Admission, RW15_FullNobodyHomeTooSlowAndUnknownAreToldApart) {
  ScriptedUpstream full(silent()), out(good_answer()), garbage(always("it is not HTTP\r\n\r\n")), slow(silent());
  out.set_health(always(plain_reply(500, "{}")));
  const RefusedPort refused;
  const std::vector<std::pair<std::string, std::uint16_t>> upstreams{
      {"a", full.port()}, {"b", out.port()}, {"c", refused.port()}, {"d", garbage.port()}, {"e", slow.port()}};
  auto config = config_of(upstreams);
  config["pools"]["a"]["queue"]["requests_max"] = 1;
  config["pools"]["b"]["probe"] = {{"interval", "100ms"}, {"timeout", "100ms"}, {"fall", 3}};
  config["routes"]["e"]["timeouts"]["first_byte"] = "300ms";
  GatewayProcess gateway(config);
  const auto ask = [&](const std::string& model) {
    return ask_once(gateway.port(), chat_request(chat_body(false, model), with_caller_key));
  };

  RawClient running(gateway.port()), queued(gateway.port());
  running.send(chat_request(chat_body(false, "a"), with_caller_key));
  ASSERT_TRUE(full.await_arrivals(1));
  queued.send(chat_request(chat_body(false, "a"), with_caller_key));
  ASSERT_TRUE(eventually(10s, [&] { return gateway.metric("headgate_queued", {{"pool", "a"}}) == 1; }));
  ASSERT_TRUE(eventually(10s, [&] { return gateway.metric("headgate_backend_health", {{"backend", "b/u"}}) == 0; }));

  const Reply a = ask("a"), b = ask("b"), c = ask("c"), d = ask("d"), e = ask("e"), f = ask("f");
  const Reply g = ask_once(gateway.port(), chat_request(R"({"model":"a",)", with_caller_key));
  const Reply h = ask_once(gateway.port(), chat_request(chat_body(false, "a"), {}));
  const Reply h2 =
      ask_once(gateway.port(), chat_request(chat_body(false, "a"), "Authorization: Bearer " + wrong_key + "\r\n"));
  struct Row {
    const char* name;
    const Reply& reply;
    int status;
    const char* code;
  };
  const std::vector<Row> rows{
      {"a", a, 503, "queue_full"},      {"b", b, 503, "no_healthy_backend"}, {"c", c, 502, "upstream_failed"},
      {"d", d, 502, "upstream_failed"}, {"e", e, 504, "upstream_timeout"},   {"f", f, 404, "model_not_found"},
      {"g", g, 400, "invalid_body"},    {"h", h, 401, "invalid_api_key"},    {"h, wrong", h2, 401, "invalid_api_key"}};
  for (const auto& [name, reply, status, code] : rows) {
    SCOPED_TRACE(std::string("(") + name + ") " + reply.raw);
    EXPECT_EQ(reply.status, status);
    EXPECT_EQ(plain_error_fault(reply), "");
    EXPECT_EQ(error_code_of(reply), code);
    for (const std::string& secret : {std::string("127.0.0.1"), upstream_key, caller_key, wrong_key})
      EXPECT_EQ(reply.body.find(secret), std::string::npos) << secret;
    for (const auto& [letter, port] : upstreams)
      EXPECT_EQ(reply.body.find(":" + std::to_string(port)), std::string::npos) << port;
  }
  EXPECT_GE(seconds(a), 1);
  EXPECT_GE(seconds(b), 1);
  EXPECT_EQ(full.arrival_count(), 1u);
  EXPECT_EQ(out.arrival_count(), 0u);
}

// What is turned away was not checked; once there is room again, it is.
TEST(Admission, AFullQueueIsToldBeforeTheBodyIsChecked) {
  ScriptedUpstream full(silent());
  auto config = config_of({{"a", full.port()}});
  config["pools"]["a"]["queue"]["requests_max"] = 0;
  config["workers"] = 1;  // each worker finds out for itself
  GatewayProcess gateway(config);
  RawClient running(gateway.port());
  running.send(chat_request(chat_body(false, "a"), with_caller_key));
  ASSERT_TRUE(full.await_arrivals(1));
  const auto code_of = [&](const std::string& body) {
    return error_code_of(ask_once(gateway.port(), chat_request(body, with_caller_key)));
  };
  const std::string broken = R"({"model":"a",[]})", unknown = R"({"model":"zz",[]})";
  EXPECT_EQ(code_of(broken), "invalid_body");  // nobody has found the queue full yet
  EXPECT_EQ(code_of(chat_body(false, "a")), "queue_full");
  EXPECT_EQ(code_of(broken), "queue_full");
  EXPECT_EQ(code_of(unknown), "invalid_body");
  EXPECT_EQ(code_of(R"({"messages":[],"model":"a"})"), "queue_full");
  EXPECT_EQ(gateway.metric("headgate_requests_total", {{"route", "a"}, {"outcome", "refused"}}), 3);
  running.close();
  ASSERT_TRUE(eventually(10s, [&] { return gateway.metric("headgate_backend_in_flight", {{"backend", "a/u"}}) == 0; }));
  EXPECT_EQ(code_of(broken), "invalid_body");
}

}  // namespace
}  // namespace headgate::support
