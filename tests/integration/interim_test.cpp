// Interim (1xx) answers of a backend: swallowed, whenever they come.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n", hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";

// More than sockets hold: it is still being written when the backend has seen its head.
std::string large_request() {
  return chat_request(chat_body(false, "m", R"(,"pad":")" + std::string(16 << 20, 'x') + '"'));
}

class Interim : public testing::Test {
 protected:
  static nlohmann::json config_for(const ScriptedUpstream& upstream) {
    auto config = basic_config({&upstream});
    config["routes"]["m"]["timeouts"]["first_byte"] = "10s";
    return config;
  }
  ScriptedUpstream upstream_{always(plain_reply(200, good_body("m")))};
  GatewayProcess gateway_{config_for(upstream_)};
};

TEST_F(Interim, AnswersDoNotStopARequestThatIsBeingWritten) {
  for (const std::string& interim : {go_on, go_on + hints}) {
    upstream_.set_interim(interim);
    const Reply reply = ask_once(gateway_.port(), large_request(), 30s);
    EXPECT_EQ(reply.status, 200) << reply.raw;
    EXPECT_EQ(reply.body, good_body("m"));
  }
  EXPECT_EQ(upstream_.arrival_count(), 2u);
}

TEST_F(Interim, AnswersMayComeInHalvesRoundTheEndOfTheRequest) {
  upstream_.set_interim(hints.substr(0, 30));
  upstream_.set_script(always(hints.substr(30) + go_on + plain_reply(200, good_body("m"))));
  EXPECT_EQ(ask_once(gateway_.port(), large_request(), 30s).body, good_body("m"));
}

// Sixteen are enough, whether before the request's end or behind it.
TEST_F(Interim, AnswersAreCounted) {
  for (const int n : {16, 17}) {
    std::string interim;
    for (int i = 1; i < n; ++i) interim += go_on;
    upstream_.set_interim(interim);
    upstream_.set_script(always(go_on + plain_reply(200, good_body("m"))));
    EXPECT_EQ(ask_once(gateway_.port(), large_request(), 30s).status, n == 16 ? 200 : 502);
  }
}

// A final answer ends the writing.
TEST_F(Interim, AnswersMayBeFollowedByARefusalBeforeTheRequestIsRead) {
  const std::string refused = R"({"error":{"message":"too large","type":"t","param":null,"code":"c"}})";
  upstream_.set_interim(go_on + plain_reply(413, refused));
  const Reply reply = ask_once(gateway_.port(), large_request(), 30s);
  EXPECT_EQ(reply.status, 413) << reply.raw;
  EXPECT_EQ(reply.body, refused);
}

}  // namespace
}  // namespace headgate::support
