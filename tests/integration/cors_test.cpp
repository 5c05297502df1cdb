// Pages in browsers: case RW-28.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

constexpr const char* preflight_lines =
    "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization, content-type\r\n";

class Cors : public testing::Test {
 protected:
  static nlohmann::json config_for(const ScriptedUpstream& upstream, const std::string& origin) {
    auto config = basic_config({&upstream});
    config["cors"]["origins"] = {origin};
    return config;
  }
  static std::string preflight(const std::string& origin, const std::string& path = "/v1/chat/completions") {
    return request("OPTIONS", path, "", "Origin: " + origin + "\r\n" + preflight_lines);
  }
  Reply ask(const std::string& bytes) const { return ask_once(gateway_.port(), bytes); }

  // The upstream has an opinion of its own about who may read.
  ScriptedUpstream upstream_{[](Exchange& x) {
    const std::string own = "Access-Control-Allow-Origin: *\r\nVary: Accept\r\n";
    if (x.arrival().body.find("\"stream\":true") == std::string::npos)
      return static_cast<void>(x.write_last(plain_reply(200, good_body("m"), own)));
    x.write(stream_head(own));
    for (const std::string& event : good_events("m", true)) x.write(chunk(event));
    x.write_last(final_chunk());
  }};
  GatewayProcess gateway_{config_for(upstream_, "https://one.example")};
};

TEST_F(Cors, RW28_OnlyTheConfiguredOriginPassesAndOnlyPreflightsNeedNoKey) {
  const Reply one = ask(preflight("https://one.example"));  // (a)
  EXPECT_EQ(one.status, 204) << one.raw;
  EXPECT_EQ(one.head.get("access-control-allow-origin"), "https://one.example");
  EXPECT_NE(one.head.get("access-control-allow-methods").find("POST"), std::string::npos);
  EXPECT_EQ(one.head.get("access-control-allow-headers"), "authorization, content-type");
  EXPECT_EQ(one.head.get("access-control-max-age"), "600");
  const Reply two = ask(preflight("https://two.example"));  // (b)
  EXPECT_FALSE(two.head.has("access-control-allow-origin")) << two.raw;
  EXPECT_FALSE(two.head.has("access-control-allow-headers"));
  EXPECT_EQ(two.head.get("vary"), "Origin");
  EXPECT_EQ(ask(request("OPTIONS", "/v1/chat/completions")).status, 405);  // (c)
  EXPECT_EQ(ask(request("OPTIONS", "/v1/chat/completions", "", "Origin: https://one.example\r\n")).status, 405);
  EXPECT_EQ(ask(preflight("https://one.example", "/v1/nothing")).status, 404);
  const Reply wrong = ask(request("POST", "/v1/chat/completions", chat_body(false),  // (d)
                                  "Authorization: Bearer no\r\nOrigin: https://one.example\r\n"));
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(wrong.head.all("access-control-allow-origin"), std::vector<std::string>{"https://one.example"});
  EXPECT_EQ(upstream_.arrival_count(), 0u);
  for (const bool stream : {false, true}) {  // (e)
    const Reply reply =
        ask(chat_request(chat_body(stream), "Authorization: Bearer GW1\r\nOrigin: https://one.example\r\n"));
    EXPECT_EQ(reply.status, 200) << reply.raw;
    EXPECT_EQ(reply.head.all("access-control-allow-origin"), std::vector<std::string>{"https://one.example"});
    EXPECT_EQ(reply.head.all("vary"), (std::vector<std::string>{"Accept", "Origin"}));
    EXPECT_NE(reply.head.get("access-control-expose-headers").find("x-request-id"), std::string::npos);
  }
}

TEST_F(Cors, ACallerWithoutOriginIsServedAsEver) {
  const Reply reply = ask(chat_request(chat_body(false)));
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.head.has("access-control-allow-origin"));
  EXPECT_EQ(ask(preflight("https://one.example", "/v1/models/m")).status, 204);
}

TEST(CorsOf, AnyPageMayCallWhereTheStarIsWritten) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["cors"]["origins"] = {"*"};
  GatewayProcess gateway(config);
  const Reply reply =
      ask_once(gateway.port(), chat_request(chat_body(false), "Authorization: Bearer GW1\r\nOrigin: null\r\n"));
  EXPECT_EQ(reply.head.all("access-control-allow-origin"), std::vector<std::string>{"*"});
}

TEST(CorsOf, NothingIsSaidWhereItIsNotConfigured) {
  ScriptedUpstream upstream(good_answer());
  GatewayProcess gateway(basic_config({&upstream}));
  const Reply reply = ask_once(
      gateway.port(), chat_request(chat_body(false), "Authorization: Bearer GW1\r\nOrigin: https://one.example\r\n"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.head.has("access-control-allow-origin"));
  EXPECT_FALSE(reply.head.has("vary"));
  const std::string preflight =
      request("OPTIONS", "/v1/models", "", std::string("Origin: https://one.example\r\n") + preflight_lines);
  EXPECT_EQ(ask_once(gateway.port(), preflight).status, 405);
}

}  // namespace
}  // namespace headgate::support
