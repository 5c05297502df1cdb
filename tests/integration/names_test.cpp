// Backends given by name.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

std::string url_of(const std::string& host, const ScriptedUpstream& upstream) {
  return "http://" + host + ":" + std::to_string(upstream.port());
}

// "localhost" is 127.0.0.1, on some systems ::1 before it, where nobody listens: the next address is tried at once.
TEST(Names, ABackendMayBeGivenByName) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["url"] = url_of("localhost", upstream);
  GatewayProcess gateway(config);
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
  EXPECT_EQ(reply.status, 200) << reply.raw;
  EXPECT_EQ(upstream.arrivals().at(0).head.get("host"), "localhost:" + std::to_string(upstream.port()));
}

// A name that does not exist (RFC 6761: .invalid never does) fails like a port where nobody listens; a reload that
// brings a good one is served.
TEST(Names, AnUnknownNameFailsOverAndAReloadMendsIt) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream, &upstream});
  config["pools"]["p"]["backends"][0]["url"] = url_of("nowhere.invalid", upstream);
  config["pools"]["p"]["backends"].erase(1);
  GatewayProcess gateway(config);
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false))).status, 502);
  EXPECT_EQ(upstream.arrival_count(), 0u);
  config["pools"]["p"]["backends"][0]["url"] = url_of("localhost", upstream);
  config["listen"]["data"] = "127.0.0.1:" + std::to_string(gateway.port());
  config["listen"]["admin"] = "127.0.0.1:" + std::to_string(gateway.admin_port());
  gateway.rewrite_config(std::string_view(config.dump(2)));
  ASSERT_EQ(gateway.admin_post("/admin/reload").status, 200);
  EXPECT_TRUE(eventually(10s, [&] { return ask_once(gateway.port(), chat_request(chat_body(false))).status == 200; }));
}

}  // namespace
}  // namespace headgate::support
