// What HTTP.md promises of the process round its requests: readiness, the admin listener, callers without a key.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

TEST(ContractService, IsAliveButNotReadyWithoutARoute) {
  ScriptedUpstream upstream(good_answer());
  upstream.set_health(always(plain_reply(500, "{}")));
  auto config = basic_config({&upstream});
  config["pools"]["p"]["probe"] = {{"interval", "100ms"}, {"timeout", "100ms"}, {"rise", 1}};
  GatewayProcess gateway(config, {.wait_ready = false, .environment = {}});
  const auto on_data = [&](const char* target) {
    return ask_once(gateway.port(), request("GET", target, {}, {})).status;
  };
  EXPECT_TRUE(eventually(20s, [&] { return on_data("/readyz") == 503; }));
  EXPECT_EQ(gateway.admin_get("/readyz").status, 503);
  EXPECT_EQ(on_data("/healthz"), 200);
  EXPECT_EQ(gateway.admin_get("/healthz").status, 200);
  upstream.set_health(always(plain_reply(200, "{}")));
  EXPECT_TRUE(eventually(20s, [&] { return on_data("/readyz") == 200; }));
  EXPECT_EQ(gateway.admin_get("/readyz").status, 200);
}

// Ordered to drain, it says so on the admin listener until the last answer is out, and then ends well.
TEST(ContractService, DrainsOnOrderWithTheAdminListenerOpen) {
  Event end;
  ScriptedUpstream upstream([&](Exchange& x) {
    x.write(stream_head() + chunk(content_event("one")));
    if (x.wait_for(end)) x.write_last(chunk(finish_event() + done_event()) + final_chunk());
  });
  auto config = basic_config({&upstream});
  config["drain"] = "30s";
  GatewayProcess gateway(config);
  RawClient client(gateway.port());
  client.send(chat_request(chat_body(true)));
  client.read_reply(10s, [](const Reply& r) { return !r.body.empty(); });
  EXPECT_EQ(gateway.admin_post("/admin/drain").status, 202);
  EXPECT_TRUE(eventually(scaled(2s), [&] { return gateway.admin_get("/readyz").status == 503; }));
  EXPECT_EQ(gateway.admin_get("/healthz").status, 200);
  EXPECT_NE(gateway.metrics_text().find("headgate_"), std::string::npos);
  EXPECT_EQ(gateway.exit_code(0s), std::nullopt);
  end.set();
  EXPECT_EQ(last_data_of(client.read_reply().body), "[DONE]");
  EXPECT_EQ(gateway.exit_code(scaled(5s)), 0);
}

TEST(ContractService, TheAdminListenerObeysItsRules) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["admin"]["token"] = "T1";
  GatewayProcess gateway(config);
  const std::string ours = "Host: 127.0.0.1:" + std::to_string(gateway.admin_port()) + "\r\n";
  const std::string token = "Authorization: Bearer T1\r\n";
  struct Case {
    const char *method, *target;
    std::string lines;
    int status;
  };
  const std::vector<Case> cases{{"GET", "/metrics", ours, 401},
                                {"GET", "/metrics", ours + "Authorization: Bearer GW1\r\n", 401},
                                {"GET", "/metrics", ours + token, 200},
                                {"GET", "/admin/state", ours + token, 200},
                                {"GET", "/healthz", ours, 200},
                                {"GET", "/readyz", ours, 200},
                                {"GET", "/metrics", "Host: evil.test\r\n" + token, 403},
                                {"GET", "/metrics", ours + token + "Origin: http://evil.test\r\n", 403},
                                {"POST", "/admin/reload", ours + "x-headgate-admin: 1\r\n", 401},
                                {"POST", "/admin/reload", ours + token, 200},
                                {"POST", "/metrics", ours + token, 405},
                                {"POST", "/v1/chat/completions", ours + token, 404}};
  for (const auto& [method, target, lines, status] : cases) {
    const std::string head = std::string(method) + " " + target + " HTTP/1.1\r\n" + lines + "Content-Length: 0\r\n\r\n";
    const Reply reply = ask_once(gateway.admin_port(), head);
    EXPECT_EQ(reply.status, status) << head << reply.raw;
    EXPECT_EQ(plain_error_fault(reply).empty(), status >= 400) << head << reply.raw;
    EXPECT_EQ(reply.head.get("allow"), status == 405 ? "GET" : "");
  }
  EXPECT_EQ(upstream.arrival_count(), 0u);
}

TEST(ContractService, ServesCallersWithoutAKeyOnlyWhereAllowed) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["listen"]["allow_anonymous"] = true;
  GatewayProcess gateway(config);
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false), "")).status, 200);
  EXPECT_EQ(ask_once(gateway.port(), request("GET", "/v1/models", {}, "")).status, 200);
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false))).status, 200);
  const Reply wrong = ask_once(gateway.port(), chat_request(chat_body(false), "x-api-key: GW9\r\n"));
  EXPECT_EQ(wrong.status, 401) << "a wrong key is not no key";
}

// The answer to HEAD has no body, whatever it is: the next answer on the connection is read from its first byte.
TEST(ContractService, AnswersHeadWithoutABody) {
  ScriptedUpstream upstream(good_answer());
  GatewayProcess gateway(basic_config({&upstream}));
  for (const char* target : {"/v1/models", "/v1/chat/completions", "/healthz", "/nothing"}) {
    RawClient client(gateway.port());
    client.send(request("HEAD", target) + chat_request(chat_body(false)));
    const Reply both = client.read_reply(10s, [](const Reply& r) { return r.body.size() >= 12; });
    EXPECT_EQ(both.status, target == std::string("/nothing") ? 404 : 405);
    EXPECT_TRUE(both.body.starts_with("HTTP/1.1 200")) << both.raw;
  }
}

}  // namespace
}  // namespace headgate::support
