// The caller goes away: cases RW-06 and RW-07.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"

namespace headgate::support {
namespace {

double in_flight(const GatewayProcess& gateway, const char* backend) {
  return gateway.metric("headgate_backend_in_flight", {{"backend", backend}});
}

double shown_in_flight(const GatewayProcess& gateway) {
  double sum = 0;
  const nlohmann::json state = gateway.state();
  for (const auto& backend : state.at("backends")) sum += backend.at("in_flight").get<double>();
  return sum;
}

// Ten callers at once, ten plain requests each.
int good_replies_of_a_hundred(std::uint16_t port) {
  std::atomic<int> good = 0;
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 10; ++caller)
    callers.emplace_back([&] {
      RawClient client(port);
      for (int n = 0; n < 10; ++n) good += client.ask(chat_request(chat_body(false))).status == 200;
    });
  callers.clear();
  return good;
}

// Stage: two upstreams that accept and stay silent, least in flight; 50 streamed requests in turn, each dropped by the
// caller at 0.5 s. Each time the upstream's connection closes within 1 s. One second after the last both gauges are 0.
// Then 100 good requests, ten at a time, split 50 +- 10. No failure is counted; 50 are recorded as cancelled.
TEST(Cancel, RW06_ACallerLeavingBeforeTheFirstTokenIsNoticed) {
  ScriptedUpstream one(silent(20s)), two(silent(20s));
  auto config = basic_config({&one, &two});
  config["pools"]["p"]["balance"] = "least_in_flight";
  GatewayProcess gateway(config);
  const MachineLag lag;
  const auto closed = [&] { return one.abandoned().size() + two.abandoned().size(); };
  for (std::size_t n = 1; n <= 50; ++n) {
    RawClient client(gateway.port());
    client.send(chat_request(chat_body(true)));
    const Reply nothing = client.read_reply(500ms);
    EXPECT_EQ(nothing.raw, "");
    ASSERT_EQ(one.arrival_count() + two.arrival_count(), n);
    const Time left = now();
    client.close();
    ASSERT_TRUE(eventually(scaled(5s), [&] { return closed() == n; })) << "request " << n;
    ASSERT_LE(to_ms(now() - left), to_ms(scaled(1s) + lag.slack())) << "request " << n;
  }
  const auto in_flight_of_both = [&] { return in_flight(gateway, "p/u1") + in_flight(gateway, "p/u2"); };
  EXPECT_TRUE(eventually(scaled(1s) + lag.slack(), [&] { return in_flight_of_both() == 0; }));
  EXPECT_EQ(shown_in_flight(gateway), 0);
  EXPECT_EQ(one.open_now() + two.open_now(), 0u);

  const std::size_t before = one.arrival_count();
  one.set_script(good_answer());
  two.set_script(good_answer());
  EXPECT_EQ(good_replies_of_a_hundred(gateway.port()), 100);
  EXPECT_EQ(one.arrival_count() + two.arrival_count(), 150u);
  EXPECT_GE(one.arrival_count() - before, 40u);
  EXPECT_LE(one.arrival_count() - before, 60u);
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 0);
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u2"}}), 0);
  EXPECT_EQ(gateway.metric("headgate_cancelled_by_caller_total"), 50);
  int cancelled = 0;
  for (const auto& line : gateway.access_lines(150)) cancelled += line.value("outcome", "") == "cancelled";
  EXPECT_EQ(cancelled, 50);
}

// Stage: plain requests, at most 4 in flight and 4 queued; one marked "slow" takes 20 s, any other 20 ms. The caller
// drops four slow ones at 0.5 s and at once sends four fast ones. The upstream sees four closes within 1 s of the drop,
// the fast four are 200 within 1.2 s of it, never more than 4 are open, and the gauge then reads 0.
TEST(Cancel, RW07_PlainRequestsAreCancelledAndTheirSlotsReused) {
  const Script fast = good_answer();
  ScriptedUpstream upstream([&](Exchange& x) {
    if (x.arrival().body.find("slow") == std::string::npos) return fast(x);
    if (x.wait(20s)) fast(x);
  });
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 4;
  config["pools"]["p"]["queue"]["requests_max"] = 4;
  GatewayProcess gateway(config);
  const MachineLag lag;
  std::vector<RawClient> slow, quick;
  for (int n = 0; n < 4; ++n) {
    slow.emplace_back(gateway.port()).send(chat_request(chat_body(false, "m", R"(,"user":"slow")")));
    quick.emplace_back(gateway.port());
  }
  const Time dropped_at = now() + 500ms;
  ASSERT_TRUE(upstream.await_arrivals(4));
  std::this_thread::sleep_until(dropped_at);  // the moment is part of the stage
  const Time left = now();
  for (RawClient& client : slow) client.close();
  for (RawClient& client : quick) client.send(chat_request(chat_body(false)));
  for (RawClient& client : quick) {
    const Reply reply = client.read_reply(10s);
    EXPECT_EQ(reply.status, 200);
    EXPECT_LE(to_ms(reply.ended_at - left), to_ms(scaled(1200ms) + lag.slack()));
  }
  ASSERT_TRUE(eventually(5s, [&] { return upstream.abandoned().size() == 4; }));
  for (const Closing& closing : upstream.abandoned())
    EXPECT_LE(to_ms(closing.at - left), to_ms(scaled(1s) + lag.slack()));
  EXPECT_EQ(upstream.arrival_count(), 8u);
  EXPECT_LE(upstream.open_max(), 4u);
  EXPECT_TRUE(eventually(scaled(1s), [&] { return in_flight(gateway, "p/u1") == 0; }));
  EXPECT_EQ(shown_in_flight(gateway), 0);
}

// Behind a request that is being worked on the caller has sent 100 KB more, more than is read ahead, and leaves.
TEST(Cancel, ACallerWithUnreadBytesBehindItsRequestIsNoticed) {
  for (const bool stream : {false, true}) {
    ScriptedUpstream upstream(silent(20s));
    GatewayProcess gateway(basic_config({&upstream}));
    const MachineLag lag;
    RawClient client(gateway.port());
    client.send(chat_request(chat_body(stream)));
    ASSERT_TRUE(upstream.await_arrivals(1));
    client.send(chat_request(chat_body(false, "m", R"(,"user":")" + std::string(100'000, 'x') + "\"")));
    const Time left = now();
    client.close();
    ASSERT_TRUE(eventually(scaled(5s), [&] { return upstream.abandoned().size() == 1; }));
    EXPECT_LE(to_ms(now() - left), to_ms(scaled(1s) + lag.slack()));
    EXPECT_TRUE(eventually(scaled(1s), [&] { return in_flight(gateway, "p/u1") == 0; }));
  }
}

// His FIN says that he has left, with the request or in the middle of it; it is not told from a close. He gets his
// answer if it was made before, or none; never a refusal.
TEST(Cancel, ACallerWhoClosesHisSideHasLeft) {
  ScriptedUpstream upstream(good_answer({.delay = 0ms}));
  auto config = basic_config({&upstream});
  config["pools"]["p"]["probe"]["interval"] = "1h";
  GatewayProcess gateway(config);
  const std::string whole = chat_request(chat_body(false));
  constexpr int callers = 200;
  for (int n = 0; n < callers; ++n) {
    RawClient client(gateway.port());
    client.send(n % 2 == 0 ? whole : whole.substr(0, whole.size() - 5));
    client.finish();
    const Reply reply = client.read_reply(scaled(5s));
    EXPECT_TRUE(reply.closed || reply.complete);
    EXPECT_TRUE(reply.raw.empty() || (reply.status == 200 && n % 2 == 0)) << reply.raw;
  }
  EXPECT_EQ(gateway.metric("headgate_refusals_total"), 0);
  int left = 0;
  for (const auto& line : gateway.access_lines(callers)) {
    EXPECT_TRUE(line["outcome"] == "ok" || line["status"] == 499) << line;
    left += line["outcome"] == "cancelled";
  }
  EXPECT_GE(left, callers / 2);
  EXPECT_EQ(gateway.metric("headgate_cancelled_by_caller_total"), left);
}

}  // namespace
}  // namespace headgate::support
