// What a caller sent comes back in messages only as far as it helps to find it.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

std::string times(std::size_t n, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += text;
  return all;
}

std::string body_with(const std::string& model) { return R"({"model":")" + model + R"(","messages":[]})"; }

// A plain error whose message shows the beginning of `sent` and says that there was more.
void expect_short(const Reply& reply, int status, const std::string& code, const std::string& sent) {
  SCOPED_TRACE(code + ": " + reply.raw.substr(0, 1000));
  EXPECT_EQ(reply.status, status);
  EXPECT_EQ(plain_error_fault(reply), "");
  EXPECT_EQ(error_code_of(reply), code);
  EXPECT_LT(reply.raw.size(), 2000u);
  const std::string message = nlohmann::json::parse(reply.body)["error"]["message"];
  EXPECT_NE(message.find(sent.substr(0, 198)), std::string::npos);
  EXPECT_NE(message.find("..."), std::string::npos);
}

class Reflection : public testing::Test {
 protected:
  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{basic_config({&upstream_})};
};

TEST_F(Reflection, OfAModelIsShort) {
  RawClient client(gateway_.port());
  for (const std::string& model :
       {times(257, "m"), times(8 << 20, "m"), times(4 << 20, "é"), times(1 << 20, "\\u0001")})
    expect_short(client.ask(chat_request(body_with(model))), 404, "model_not_found", model);
  const std::string name = times(20000, "m");
  expect_short(client.ask(request("GET", "/v1/models/" + name)), 404, "model_not_found", name);
  EXPECT_EQ(client.ask(chat_request(body_with("\\u006d"))).status, 200);
  EXPECT_EQ(upstream_.arrival_count(), 1u);
}

// 160 MiB have been asked for; the connections are idle now.
TEST_F(Reflection, LeavesNothingBehind) {
  if (product_sanitized()) GTEST_SKIP() << "sanitizers keep what was freed";
  const double before = gateway_.resident_mib();
  std::vector<RawClient> idle;
  const std::string asked = chat_request(body_with(times(8 << 20, "m")));
  for (int n = 0; n < 20; ++n) EXPECT_EQ(idle.emplace_back(gateway_.port()).ask(asked).status, 404);
  EXPECT_LT(gateway_.resident_mib() - before, 64);
}

TEST_F(Reflection, OfAModelThatIsForOthersIsShort) {
  const std::string longest(256, 'm');
  auto config = gateway_.config();
  config["routes"][longest] = config["routes"]["m"];
  config["keys"][0]["routes"] = nlohmann::json::array({"m"});
  gateway_.rewrite_config(config);
  ASSERT_EQ(gateway_.admin_post("/admin/reload").status, 200);
  const Reply reply = ask_once(gateway_.port(), chat_request(body_with(longest)));
  expect_short(reply, 403, "model_not_allowed", longest);
}

TEST_F(Reflection, OfHeadsIsShort) {
  const std::string much(20000, 'x');
  expect_short(ask_once(gateway_.port(), request("GET", "/" + much)), 404, "not_found", "/" + much);
  expect_short(ask_once(gateway_.port(), request(much, "/v1/models")), 405, "method_not_allowed", much);
  const std::string packed = "Authorization: Bearer GW1\r\nContent-Encoding: " + much + "\r\n";
  expect_short(ask_once(gateway_.port(), chat_request(chat_body(false), packed)), 415, "unsupported_encoding", much);
}

}  // namespace
}  // namespace headgate::support
