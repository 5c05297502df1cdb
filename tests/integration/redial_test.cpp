// What hides a kept connection that its backend had just closed (RW-21) hides nothing else.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

// No second attempt is configured, so that only a redial can make up for a lost connection.
TEST(Redial, IsForAReusedConnectionWithoutAByteOfAnswer) {
  ScriptedUpstream upstream([good = good_answer({.delay = 0ms})](Exchange& x) {
    const std::size_t n = x.arrival().number;
    if (n == 1) return static_cast<void>(x.write("HTTP/1.1 2")), x.close();
    if (n == 2 || n == 4) return x.close();
    good(x);
  });
  GatewayProcess gateway(basic_config({&upstream}));
  RawClient client(gateway.port());
  const auto status = [&] { return client.ask(chat_request(chat_body(false))).status; };
  EXPECT_EQ(status(), 200);
  EXPECT_EQ(status(), 502) << "a byte of the answer had come";
  EXPECT_EQ(upstream.arrival_count(), 2u);
  EXPECT_EQ(status(), 502) << "the connection was fresh";
  EXPECT_EQ(upstream.arrival_count(), 3u);
  EXPECT_EQ(status(), 200);
  EXPECT_EQ(status(), 200) << "on the second connection: the kept one was closed without an answer";
  EXPECT_EQ(upstream.arrival_count(), 6u);
  EXPECT_EQ(upstream.connection_count(), 4u);
}

}  // namespace
}  // namespace headgate::support
