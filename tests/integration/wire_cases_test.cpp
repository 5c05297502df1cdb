// Connections that fail below HTTP, connections that were just closed, and sizes: cases RW-11, RW-21 and RW-24.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"
#include "support/tls_tunnel.hpp"

namespace headgate::support {
namespace {

// A listener whose queue is full and that accepts nobody: further attempts get no answer.
class SwallowingPort {
 public:
  SwallowingPort() {
    for (int n = 0; n < 3; ++n) {
      try {
        waiting_.push_back(connect_to_loopback(port(), 50ms));
      } catch (const std::system_error&) {
        break;  // full
      }
    }
  }
  std::uint16_t port() const { return listener_.port(); }

 private:
  Socket listener_ = listen_on_loopback(0, 0);
  std::vector<Socket> waiting_;
};

// Stage: U1 fails in each of these ways, U2 is good; the connect limit is 300 ms. Every caller gets U2's 200 within
// 600 ms, as the second of two attempts.
TEST(WireCases, RW11_WhatFailsBelowHttpFallsBackAsAnErrorDoes) {
  ScriptedUpstream good(good_answer());
  ScriptedUpstream closing([](Exchange& x) { x.close(); });
  ScriptedUpstream noise([](Exchange& x) { x.write("NOT HTTP AT ALL\r\n\r\n"); });
  ScriptedUpstream limited(always(plain_reply(429, R"({"error":{"message":"m","type":"t"}})")));
  ScriptedUpstream failing(always(plain_reply(503, R"({"error":{"message":"m","type":"t"}})")));
  const RefusedPort refused;
  const SwallowingPort swallowing;
  TlsTunnel untrusted(TlsTunnel::terminate, good.port(), {.identity = make_identity({})});
  const auto at = [](std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); };
  const std::pair<const char*, std::string> table[] = {
      {"an unknown name", "http://no-such-host.invalid:80"},
      {"a refused port", at(refused.port())},
      {"an address that swallows", at(swallowing.port())},
      {"a handshake that fails", "https://127.0.0.1:" + std::to_string(untrusted.port())},
      {"a connection closed at once", closing.url()},
      {"noise", noise.url()},
      {"a bare 429", limited.url()},
      {"a 503", failing.url()},
  };
  for (const auto& [what, url] : table) {
    auto config = chain_config({&good, &good});
    config["pools"]["p1"]["backends"][0]["url"] = url;
    config["pools"]["p1"]["probe"]["interval"] = "1h";
    config["routes"]["m"]["retry"]["attempts_max"] = 2;
    config["routes"]["m"]["timeouts"]["connect"] = "300ms";
    GatewayProcess gateway(config);
    const MachineLag lag;
    const std::size_t before = good.arrival_count();
    const Reply reply = ask_once(gateway.port(), chat_request(chat_body(false)));
    EXPECT_EQ(reply.status, 200) << what << "\n" << reply.raw;
    EXPECT_LE(to_ms(reply.took()), to_ms(600ms + scaled(100ms) + lag.slack())) << what;
    EXPECT_EQ(reply.head.get("x-headgate-attempts"), "2") << what;
    EXPECT_EQ(reply.head.get("x-headgate-backend"), "p2/u2") << what;
    EXPECT_EQ(good.arrival_count(), before + 1) << what;
  }
}

// Stage: U1 ends idle connections after 200 ms, by closing and by resetting. 50 requests 250 ms apart, then 50 at 195
// to 205 ms. All are answered 200 and each ran once.
TEST(WireCases, RW21_AConnectionThatWasJustClosedCostsNobodyAnything) {
  const auto play = [](bool with_reset) {
    ScriptedUpstream upstream(good_answer({.delay = 0ms}));
    upstream.set_idle_limit(200ms, with_reset);
    GatewayProcess gateway(basic_config({&upstream}));
    RawClient caller(gateway.port());
    Time next = now();
    for (int n = 0; n < 100; ++n) {
      std::this_thread::sleep_until(next);  // the pace is the input
      next = now() + (n < 50 ? 250ms : 195ms + std::chrono::milliseconds(n % 11));
      const Reply reply = caller.ask(chat_request(chat_body(false)));
      EXPECT_EQ(reply.status, 200) << (with_reset ? "reset, " : "close, ") << n << "\n" << reply.raw;
    }
    EXPECT_EQ(upstream.arrival_count(), 100u);
    EXPECT_GE(upstream.connection_count(), 50u);
  };
  std::thread other(play, true);
  play(false);
  other.join();
}

class Sizes : public testing::Test {
 protected:
  static nlohmann::json config_for(const ScriptedUpstream& upstream) {
    auto config = basic_config({&upstream});
    config["limits"]["body"] = "10MiB";
    return config;
  }
  static std::string head(const std::string& framing) {
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer GW1\r\n" + framing +
           "\r\n\r\n";
  }
  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{config_for(upstream_)};
};

// (a) 12 MiB with a length and (b) in chunks, all written before anything is read: 20 of 20 read the 413 whole.
TEST_F(Sizes, RW24_WhoWritesTooMuchCanReadWhy) {
  const std::string body = chat_body(false, "m", ",\"user\":\"" + std::string(12 << 20, 'u') + "\"");
  std::string chunks;
  for (std::size_t at = 0; at < body.size(); at += 64 << 10)
    chunks += chunk(std::string_view(body).substr(at, 64 << 10));
  const std::string framed[] = {head("Content-Length: " + std::to_string(body.size())) + body,
                                head("Transfer-Encoding: chunked") + chunks + final_chunk()};
  for (const std::string& bytes : framed) {
    for (int n = 0; n < 20; ++n) {
      RawClient caller(gateway_.port());
      caller.send(bytes, scaled(10s));
      const Reply reply = caller.read_reply(scaled(10s));
      ASSERT_EQ(reply.status, 413) << n << reply.raw;
      EXPECT_TRUE(reply.complete);
      EXPECT_EQ(plain_error_fault(reply), "");
      EXPECT_EQ(error_code_of(reply), "body_too_large");
    }
  }
  EXPECT_EQ(upstream_.arrival_count(), 0u);
  const Reply wide =
      ask_once(gateway_.port(), chat_request(chat_body(false), "Authorization: Bearer GW1\r\nx-wide: " +
                                                                   std::string(40 << 10, 'w') + "\r\n"));  // (e)
  EXPECT_EQ(wide.status, 431);
}

// (c) 9.9 MiB arrive as they were sent; (d) 32 MiB of events go through and leave nothing behind.
TEST_F(Sizes, RW24_WhatIsInsideGoesThroughWhole) {
  std::string text;
  for (std::size_t n = 0; text.size() < 9'900'000; ++n) text += std::to_string(n * 2654435761u) + " ";
  const std::string body = chat_body(false, "m", ",\"user\":\"" + text + "\"");
  EXPECT_EQ(ask_once(gateway_.port(), chat_request(body), scaled(20s)).status, 200);
  EXPECT_EQ(upstream_.arrivals().back().body, body);

  constexpr std::size_t events = 32 * 1024;
  upstream_.set_script([](Exchange& x) {
    x.write(stream_head());
    const std::string event = content_event(std::string(900, 'w'));
    std::string batch;
    for (std::size_t n = 0; n < events; ++n) {
      batch += chunk(event);
      if (n % 64 == 63 && !x.write(std::exchange(batch, {}))) return;
    }
    x.write(chunk(finish_event() + done_event()));
    x.write_last(final_chunk());
  });
  EXPECT_TRUE(eventually(5s, [&] { return gateway_.metric("headgate_body_bytes_held") == 0; }));
  const double before = gateway_.resident_mib();
  const Reply reply = ask_once(gateway_.port(), chat_request(chat_body(true)), scaled(60s));
  EXPECT_GE(reply.body.size(), 32u << 20);
  EXPECT_EQ(content_of(reply.body).size(), events * 900);
  EXPECT_EQ(last_data_of(reply.body), "[DONE]");
  if (!product_sanitized()) {
    EXPECT_LE(gateway_.resident_mib() - before, 8);
  }
}

}  // namespace
}  // namespace headgate::support
