// Choosing an upstream: case RW-16.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

// Stage: four idle upstreams that take 1 s before any byte, least in flight, two workers; 40 connections send a request
// within 5 ms; twenty times over. Every time each upstream has 10 +- 1 arrivals.
TEST(Balance, RW16_ABurstIsSpreadEvenly) {
  std::vector<std::unique_ptr<ScriptedUpstream>> upstreams;
  for (int n = 0; n < 4; ++n) upstreams.push_back(std::make_unique<ScriptedUpstream>(good_answer({.delay = 1s})));
  auto config = basic_config({upstreams[0].get(), upstreams[1].get(), upstreams[2].get(), upstreams[3].get()});
  config["pools"]["p"]["balance"] = "least_in_flight";
  config["workers"] = 2;
  GatewayProcess gateway(config);
  std::vector<RawClient> clients;
  for (int n = 0; n < 40; ++n) clients.emplace_back(gateway.port());
  const std::string bytes = chat_request(chat_body(false));
  std::array<std::size_t, 4> before{};
  for (int round = 1; round <= 20; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Time start = now();
    for (RawClient& client : clients) client.send(bytes);
    EXPECT_LE(to_ms(now() - start), to_ms(scaled(500ms))) << "the burst was none, so this round shows nothing";
    for (RawClient& client : clients) {
      const Reply reply = client.read_reply();
      ASSERT_EQ(reply.status, 200) << reply.raw;
    }
    for (std::size_t n = 0; n < upstreams.size(); ++n) {
      const std::size_t arrived = upstreams[n]->arrival_count() - before[n];
      EXPECT_GE(arrived, 9u) << "upstream " << n + 1;
      EXPECT_LE(arrived, 11u) << "upstream " << n + 1;
      before[n] += arrived;
    }
  }
}

}  // namespace
}  // namespace headgate::support
