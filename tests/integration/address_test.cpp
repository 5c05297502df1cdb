// Who a caller is by his address: how many connections he may have, and whom a trusted proxy speaks for.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

std::string forwarded(const std::string& lines) { return chat_request(chat_body(false), headers_with(lines)); }

TEST(Address, HasItsOwnCapOfConnectionsAndGetsEachBack) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["listen"]["connections_per_address"] = 3;
  config["workers"] = 2;
  GatewayProcess gateway(config);
  const auto refused = [&] {
    return gateway.metric("headgate_connections_refused_total", {{"limit", "connections_per_address"}});
  };
  ASSERT_TRUE(eventually(5s, [&] { return gateway.metric("headgate_caller_connections") == 0; }));  // who asked /readyz
  for (int round = 0; round < 3; ++round) {
    std::vector<RawClient> callers;
    for (int n = 0; n < 3; ++n) {
      callers.emplace_back(gateway.port());
      EXPECT_EQ(callers.back().ask(chat_request(chat_body(false))).status, 200);
    }
    RawClient over(gateway.port());
    over.send(chat_request(chat_body(false)));
    EXPECT_EQ(over.read_reply(scaled(5s)).status, 0);
    EXPECT_EQ(refused(), round + 1);
    EXPECT_EQ(callers.front().ask(chat_request(chat_body(false))).status, 200);
    callers.clear();
    ASSERT_TRUE(eventually(scaled(5s), [&] { return gateway.metric("headgate_caller_connections") == 0; }));
  }
  EXPECT_EQ(gateway.metric("headgate_connections_refused_total", {{"limit", "connections_max"}}), 0);
}

TEST(Address, OfATrustedProxyIsNotCountedAndItsWordIsTaken) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["listen"]["connections_per_address"] = 1;
  config["listen"]["trusted_proxies"] = {"127.0.0.0/8", "10.0.0.0/8"};
  GatewayProcess gateway(config);
  RawClient first(gateway.port()), second(gateway.port());
  const std::pair<const char*, const char*> table[] = {
      {"", "127.0.0.1"},
      {"X-Forwarded-For: 192.0.2.7\r\n", "192.0.2.7"},
      {"X-Forwarded-For: 198.51.100.1, 192.0.2.7, 10.1.1.1\r\n", "192.0.2.7"},
      {"X-Forwarded-For: 198.51.100.1\r\nx-forwarded-for: 10.2.2.2 ,  10.1.1.1\r\n", "198.51.100.1"},
      {"X-Forwarded-For: made up, 192.0.2.7\r\n", "192.0.2.7"},
      {"X-Forwarded-For: 192.0.2.7, \"quoted\"\r\n", "127.0.0.1"},
      {"X-Forwarded-For: 10.9.9.9\r\n", "10.9.9.9"},
      {"X-Forwarded-For: 2001:db8::5\r\n", "2001:db8::5"},
      {"X-Forwarded-For: \r\n", "127.0.0.1"},
  };
  std::size_t line = 0;
  for (const auto& [headers, client] : table) {
    EXPECT_EQ((line % 2 == 0 ? first : second).ask(forwarded(headers)).status, 200);
    EXPECT_EQ(gateway.access_lines(line + 1).at(line).value("client", ""), client) << headers;
    ++line;
  }
}

TEST(Address, IsTheConnectionsWhereNoProxyIsTrusted) {
  ScriptedUpstream upstream(good_answer());
  GatewayProcess gateway(basic_config({&upstream}));
  EXPECT_EQ(ask_once(gateway.port(), forwarded("X-Forwarded-For: 192.0.2.7\r\n")).status, 200);
  EXPECT_EQ(gateway.access_lines(1).front().value("client", ""), "127.0.0.1");
  EXPECT_EQ(upstream.arrivals().front().head.get("x-forwarded-for"), "192.0.2.7");  // goes on as any other line
}

}  // namespace
}  // namespace headgate::support
