// Probes against real traffic: cases RW-12 and RW-13.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

// Stage: three upstreams, probes limited to 1 s, three misses take one out. A probe hangs while its server works; plain
// requests take 2 s; six run at any time for 30 s. No answer is our 503 (all are 200), each server has at least 20 % of
// the requests, and the probes are seen to fail. Our choice: a recent success counts as alive, so nobody goes out.
TEST(Health, RW12_BusyServersThatMissTheirProbesStayIn) {
  const Script work = good_answer({.delay = 2s});
  ScriptedUpstream one(work), two(work), three(work);
  const std::array upstreams{&one, &two, &three};
  for (ScriptedUpstream* upstream : upstreams)
    upstream->set_health([upstream](Exchange& x) {
      if (upstream->open_now() > 0) return static_cast<void>(x.wait_until_gone(5s));
      x.write(plain_reply(200, "{}"));
    });
  auto config = basic_config({&one, &two, &three});
  config["pools"]["p"]["probe"] = {{"interval", "1s"}, {"timeout", "1s"}, {"fall", 3}};
  GatewayProcess gateway(config);
  std::atomic<int> good = 0, bad = 0;
  const Time end = now() + 30s;
  std::vector<std::jthread> callers;
  for (int n = 0; n < 6; ++n)
    callers.emplace_back([&] {
      RawClient client(gateway.port());
      while (now() < end) {
        const Reply reply = client.ask(chat_request(chat_body(false)));
        reply.status == 200 ? ++good : ++bad;
        if (reply.status != 200) ADD_FAILURE() << reply.raw;
      }
    });
  callers.clear();
  EXPECT_EQ(bad, 0);
  EXPECT_GE(good, 60);
  for (std::size_t n = 0; n < upstreams.size(); ++n) {
    EXPECT_GE(upstreams[n]->arrival_count() * 5, static_cast<std::size_t>(good)) << "server " << n + 1;
    const Labels backend{{"backend", "p/u" + std::to_string(n + 1)}};
    EXPECT_GE(gateway.metric("headgate_probe_failures_total", backend), 6);
    EXPECT_EQ(gateway.metric("headgate_health_changes_total", backend), 0);
  }
}

// Stage: three misses in a row take out, two hits in a row bring back. Probes: hit, miss, hit, miss, .. 20 of them,
// then three misses, then hits. No change during the 20. Number 20 was a miss already, so the third in a row is number
// 22: one change to "out" there. One change to "in" at the second hit, number 25. The counter ends at 2.
TEST(Health, RW13_OneMissedProbeFlipsNothing) {
  struct Seen {
    double changes;
    std::string health;
  };
  ScriptedUpstream upstream(good_answer());
  std::mutex mutex;
  std::vector<Seen> before;  // [n]: just before probe n + 1 was answered
  const GatewayProcess* watched = nullptr;
  upstream.set_health([&](Exchange& x) {
    std::unique_lock lock(mutex);
    if (watched == nullptr || before.size() >= 27) return static_cast<void>(x.write(plain_reply(200, "{}")));
    const auto backend = watched->state().at("backends").at(0);
    before.push_back({backend.value("health_changes", -1.0), backend.value("health", "")});
    const std::size_t n = before.size();
    lock.unlock();
    const bool hit = n <= 20 ? n % 2 == 1 : n > 23;
    x.write(plain_reply(hit ? 200 : 500, "{}"));
  });
  auto config = basic_config({&upstream});
  config["pools"]["p"]["probe"] = {{"interval", "250ms"}, {"timeout", "250ms"}, {"fall", 3}, {"rise", 2}};
  GatewayProcess gateway(config);
  {
    const std::lock_guard lock(mutex);
    watched = &gateway;
  }
  EXPECT_TRUE(eventually(60s, [&] {
    const std::lock_guard lock(mutex);
    return before.size() >= 27;
  }));
  upstream.set_health([](Exchange& x) { x.write(plain_reply(200, "{}")); });
  const std::lock_guard lock(mutex);
  watched = nullptr;
  ASSERT_EQ(before.size(), 27u);
  for (std::size_t answered = 0; answered < before.size(); ++answered) {
    SCOPED_TRACE("after probe " + std::to_string(answered));
    const bool out = answered >= 22 && answered < 25;
    EXPECT_EQ(before[answered].changes, answered < 22 ? 0 : out ? 1 : 2);
    EXPECT_EQ(before[answered].health, out ? "down" : "up");
  }
  EXPECT_EQ(gateway.metric("headgate_health_changes_total", {{"backend", "p/u1"}}), 2);
}

// The log says why, that it is out, and that it is back.
TEST(Health, IsInTheLog) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["pools"]["p"]["probe"] = {{"interval", "200ms"}, {"timeout", "200ms"}, {"fall", 3}, {"rise", 2}};
  GatewayProcess gateway(config);
  const auto says = [&](const char* what) {
    return eventually(scaled(10s), [&] { return gateway.output().find(what) != std::string::npos; });
  };
  upstream.set_health(always(plain_reply(503, "{}")));
  EXPECT_TRUE(says("warning backend p/u1: a probe was missed: status 503"));
  EXPECT_TRUE(says("warning backend p/u1 is out until its probes succeed"));
  upstream.set_health(always(plain_reply(200, "{}")));
  EXPECT_TRUE(says("info backend p/u1: its probes are answered again"));
  EXPECT_TRUE(says("info backend p/u1 is back"));
}

}  // namespace
}  // namespace headgate::support
