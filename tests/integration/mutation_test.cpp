// Exchanges with seeded mistakes in them, by the thousand, against the running gateway: each has an end of the kinds
// that HTTP.md names, none reaches another request, nothing is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <random>
#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

using Random = std::mt19937_64;

// What waits for bytes that will not come need not wait long.
const std::string shortly = std::to_string(60 * time_factor) + "ms";

std::size_t below(Random& random, std::size_t n) {
  return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
}

// One to three mistakes: a byte changed, a piece missing or twice, something foreign put in, the end missing.
std::string mistaken(std::string text, Random& random) {
  static const std::array<std::string, 16> foreign{"\r\n",
                                                   "\n",
                                                   "\r",
                                                   std::string(1, '\0'),
                                                   "\xff",
                                                   ":",
                                                   " ",
                                                   "\t",
                                                   "\r\n\r\n",
                                                   "99999999",
                                                   "-1",
                                                   "0x10",
                                                   "\"}],",
                                                   "\\ud800",
                                                   "\r\nContent-Length: 3\r\n",
                                                   "\r\nTransfer-Encoding: chunked\r\n"};
  for (std::size_t left = 1 + below(random, 3); left > 0 && !text.empty(); --left) {
    const std::size_t at = below(random, text.size());
    const std::size_t length = 1 + below(random, std::min<std::size_t>(text.size() - at, 40));
    switch (below(random, 5)) {
      case 0:
        text[at] = static_cast<char>(below(random, 256));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(at, foreign[below(random, foreign.size())]);
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

void expect_nothing_left(const GatewayProcess& gateway) {
  for (const char* gauge : {"headgate_requests_in_progress", "headgate_body_bytes_held", "headgate_backend_in_flight",
                            "headgate_queued", "headgate_upstream_connections"}) {
    EXPECT_TRUE(eventually(scaled(5s), [&] { return gateway.metric(gauge) == 0; })) << gauge;
  }
}

TEST(Mutation, OfRequestsIsAnsweredOrClosedAndReachesNobodyElse) {
  ScriptedUpstream upstream(good_answer({.delay = 0ms}));
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 64;
  config["pools"]["p"]["probe"]["interval"] = "1h";
  for (const char* limit : {"head_time", "body_idle", "keep_alive"}) config["limits"][limit] = shortly;
  GatewayProcess gateway(config);
  const std::string body = chat_body(false), head =
                                                 "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway.test\r\n"
                                                 "Authorization: Bearer GW1\r\nx-request-id: a-1\r\n";
  const std::array<std::string, 5> sound{
      chat_request(body), chat_request(chat_body(true)),
      head + "Transfer-Encoding: chunked\r\n\r\n" + chunk(body.substr(0, 20)) + chunk(body.substr(20)) + final_chunk(),
      request("GET", "/v1/models"),
      head + "Expect: 100-continue\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body};
  constexpr std::array answers{100, 200, 400, 401, 403, 404, 405, 408, 413, 415, 417, 431, 501, 505};
  std::mutex told;
  const auto play = [&](std::uint64_t seed) {
    Random random(seed);
    for (int n = 0; n < (product_sanitized() ? 40 : 150); ++n) {
      const std::string bytes = mistaken(sound[below(random, sound.size())], random);
      RawClient caller(gateway.port());
      caller.send(bytes);
      for (Reply reply = caller.read_reply(scaled(5s));; reply = caller.read_reply(scaled(5s))) {
        const std::scoped_lock lock(told);
        if (reply.raw.empty()) {
          EXPECT_TRUE(reply.closed || reply.reset) << seed << "/" << n << ": neither an answer nor an end\n" << bytes;
          break;
        }
        EXPECT_TRUE(std::ranges::count(answers, reply.status) == 1) << seed << "/" << n << "\n"
                                                                    << bytes << "\n"
                                                                    << reply.raw;
        EXPECT_FALSE(reply.bad_framing) << bytes << "\n" << reply.raw;
        EXPECT_TRUE(reply.complete || reply.status == 100) << bytes << "\n" << reply.raw;
        if (reply.status >= 400) {
          EXPECT_EQ(plain_error_fault(reply), "") << bytes << "\n" << reply.raw;
        }
      }
    }
  };
  std::vector<std::thread> callers;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) callers.emplace_back(play, seed);
  for (int n = 0; n < 20; ++n) {
    const Reply reply = ask_once(gateway.port(), chat_request(body), scaled(5s));
    EXPECT_EQ(reply.body, good_body("m")) << reply.raw;
  }
  for (std::thread& caller : callers) caller.join();
  expect_nothing_left(gateway);
  for (const Arrival& arrival : upstream.arrivals()) {
    EXPECT_TRUE(arrival.json().is_object()) << arrival.raw;
    EXPECT_EQ(arrival.head.get("host"), upstream.authority()) << arrival.raw;
    EXPECT_EQ(arrival.head.get("authorization"), "Bearer K1") << arrival.raw;
    EXPECT_EQ(arrival.head.all("content-length").size() + arrival.head.all("transfer-encoding").size(), 1u)
        << arrival.raw;
  }
}

TEST(Mutation, OfAnswersIsAnAnswerOrAnErrorAndReachesNobodyElse) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["pools"]["p"]["probe"]["interval"] = "1h";
  for (const char* limit : {"first_byte", "first_token", "idle", "total_unary"})
    config["routes"]["m"]["timeouts"][limit] = shortly;
  GatewayProcess gateway(config);
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n", text = good_body("m");
  std::string events;
  for (const std::string& event : good_events("m", true)) events += chunk(event);
  const std::array<std::string, 4> sound{
      plain_reply(200, text), head + "Transfer-Encoding: chunked\r\n\r\n" + chunk(text) + final_chunk(),
      "HTTP/1.1 102 Processing\r\n\r\n" + plain_reply(500, R"({"error":{"message":"m","type":"t","code":"c"}})"),
      stream_head() + events + final_chunk()};
  Random random(7);
  const Script good = good_answer({.delay = 0ms});
  for (int n = 0; n < (product_sanitized() ? 150 : 500); ++n) {
    const std::size_t which = below(random, sound.size());
    const std::string bytes = mistaken(sound[which], random);
    upstream.set_script([&](Exchange& x) {
      x.write(bytes);
      if (n % 2 == 0) x.close();
    });
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(which == 3)), scaled(5s));
    ASSERT_NE(reply.status, 0) << n << "\n" << bytes;
    ASSERT_FALSE(reply.bad_framing) << n << "\n" << bytes << "\n" << reply.raw;
    ASSERT_TRUE(reply.complete || reply.closed || reply.reset) << n << "\n" << bytes << "\n" << reply.raw;
    if (reply.status >= 400) {
      ASSERT_TRUE(reply.complete) << n << "\n" << bytes << "\n" << reply.raw;
    }
    upstream.set_script(good);
    const Reply next = ask_once(gateway.port(), chat_request(chat_body(false)), scaled(5s));
    ASSERT_EQ(next.body, text) << n << " was followed by a broken answer\n" << bytes << "\n" << next.raw;
  }
  expect_nothing_left(gateway);
}

}  // namespace
}  // namespace headgate::support
