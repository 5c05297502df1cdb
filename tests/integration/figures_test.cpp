// Figures that the gateway promises, measured on the real binary: a killed backend, reloads under load, departures.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <mutex>
#include <thread>

#include "support/answers.hpp"
#include "support/child_process.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"
#include "support/steady_callers.hpp"

namespace headgate::support {
namespace {

// One request of the open-loop load below and what came of it.
struct Asked {
  bool stream = false;
  Reply reply;
};

// `per_second` requests for `span`, every other one a stream, each at its time and on a connection of its own.
std::vector<Asked> play(std::uint16_t port, int per_second, Nanos span, int unary_tokens, int stream_tokens) {
  const auto count = static_cast<std::size_t>(per_second * (span / 1s));
  std::vector<Asked> asked(count);
  std::vector<std::jthread> threads;
  const Time start = now();
  for (std::size_t n = 0; n < count; ++n) {
    std::this_thread::sleep_until(start + n * 1s / per_second);  // the pace is the input
    threads.emplace_back([&, n] {
      asked[n].stream = n % 2 == 1;
      const int tokens = asked[n].stream ? stream_tokens : unary_tokens;
      const std::string extra = ",\"max_tokens\":" + std::to_string(tokens);
      try {
        asked[n].reply = ask_once(port, chat_request(chat_body(asked[n].stream, "m", extra)), 30s);
      } catch (const std::system_error& refused) {
        ADD_FAILURE() << refused.what();
      }
    });
  }
  threads.clear();
  return asked;
}

// Stage: four mock servers of 16 slots at 20 ms a token, half of the requests 25 tokens plain (500 ms), half 100 tokens
// streamed (2 s), 30 a second: 38 of 64 slots busy, 60 %. One server is killed with SIGKILL at 3 s. No request fails
// before its first token (a plain one never does); what is cut after it gets an error event; from 1 s after the kill
// the dead server gets under 5 % of new attempts.
TEST(Figures, AKilledBackendCostsNoRequestBeforeItsFirstToken) {
  std::vector<std::unique_ptr<MockProcess>> mocks;
  auto config = basic_config({});
  config["pools"]["p"].erase("balance");  // the default
  config["routes"]["m"].erase("retry");
  config["routes"]["m"].erase("timeouts");
  for (int n = 1; n <= 4; ++n) {
    mocks.push_back(std::make_unique<MockProcess>(std::vector<std::string>{"--profile", "demo", "--slots", "16"}));
    config["pools"]["p"]["backends"].push_back(backend_config("u" + std::to_string(n), mocks.back()->port()));
  }
  GatewayProcess gateway(config);
  const MachineLag lag;
  const auto attempts = [&](const Labels& backend) { return gateway.metric("headgate_attempts_total", backend); };
  const Labels killed{{"backend", "p/u1"}};
  double all_before = 0, killed_before = 0;
  Nanos looked_after{};
  std::jthread killer([&] {
    const Time kill_at = now() + 3s;
    std::this_thread::sleep_until(kill_at);  // the moment is the stage
    mocks[0]->process().signal(SIGKILL);
    std::this_thread::sleep_until(kill_at + 1s);
    all_before = attempts({});
    killed_before = attempts(killed);
    looked_after = now() - kill_at;
  });
  const std::vector<Asked> asked = play(gateway.port(), 30, 8s, 25, 100);
  killer.join();
  std::size_t cut = 0, before_first_token = 0;
  for (const auto& [stream, reply] : asked) {
    const bool whole = reply.status == 200 && reply.complete && (!stream || last_data_of(reply.body) == "[DONE]");
    if (whole) continue;
    if (stream && !content_of(reply.body).empty()) {
      ++cut;
      EXPECT_NE(last_data_of(reply.body).find("\"error\""), std::string::npos) << reply.body;
      continue;
    }
    if (++before_first_token <= 3) ADD_FAILURE() << reply.raw;
  }
  EXPECT_EQ(before_first_token, 0u);
  EXPECT_LE(cut, 16u);
  const double share = (attempts(killed) - killed_before) / (attempts({}) - all_before);
  EXPECT_LT(share, 0.05);
  EXPECT_GT(killed_before, 10);
  EXPECT_GT(attempts({}) - all_before, 60) << "too few attempts to speak of a share";
  EXPECT_LE(to_ms(looked_after), to_ms(1s + scaled(200ms) + lag.slack()));
  std::cout << asked.size() << " requests, " << cut << " streams cut after content, share of the killed " << share * 100
            << " %\n";
}

std::vector<std::string> long_events() {
  std::vector<std::string> events{role_event()};
  for (int n = 0; n < 80; ++n) events.push_back(content_event("word " + std::to_string(n) + " \xC3\xA9 "));
  events.push_back(finish_event());
  events.push_back(done_event());
  return events;
}

// Plain requests are answered well; streams are the events above, 50 ms apart: 4 s.
void long_streams(Exchange& x) {
  static const Script good = good_answer();
  if (x.arrival().body.find("\"stream\":true") == std::string::npos) return good(x);
  x.write(stream_head());
  Time next = now();
  for (const std::string& event : long_events()) {
    x.write(chunk(event));
    if (!x.wait_until(next += 50ms)) return;
  }
  x.write_last(final_chunk());
}

// Stage: 50 requests a second and 20 streams of 4 s; meanwhile five reloads that add a third backend, remove it, add
// it, remove it and add it. No request fails, every stream is byte for byte what the backend wrote, and no counter
// falls.
TEST(Figures, FiveReloadsUnderLoadFailNothing) {
  ScriptedUpstream one(long_streams), two(long_streams), three(long_streams);
  const auto with = basic_config({&one, &two, &three}), without = basic_config({&one, &two});
  GatewayProcess gateway(without);
  SteadyCallers callers(gateway.port(), 5, 100ms);
  std::vector<RawClient> streams;
  for (int n = 0; n < 20; ++n) streams.emplace_back(gateway.port()).send(chat_request(chat_body(true)));
  ASSERT_TRUE(eventually(10s, [&] { return one.open_now() + two.open_now() >= 20; }));
  const auto counters = [&] {
    std::map<std::string, double> totals;
    for (const Sample& sample : parse_metrics(gateway.metrics_text())) {
      if (!sample.name.ends_with("_total") && !sample.name.ends_with("_count")) continue;
      std::string key = sample.name;
      for (const auto& [name, value] : sample.labels) key += " " + name + "=" + value;
      totals[key] = sample.value;
    }
    return totals;
  };
  auto before = counters();
  for (int reload = 1; reload <= 5; ++reload) {
    gateway.rewrite_config(reload % 2 == 1 ? with : without);
    const Reply reply = gateway.admin_post("/admin/reload");
    EXPECT_EQ(reply.status, 200) << reply.raw;
    std::this_thread::sleep_for(500ms);  // traffic under this configuration is the stage
    const auto after = counters();
    for (const auto& [name, value] : before) {
      const auto found = after.find(name);
      if (found == after.end()) {
        EXPECT_NE(name.find("p/u3"), std::string::npos) << name << " is gone";  // shown until its last request ends
      } else {
        EXPECT_GE(found->second, value) << name;
      }
    }
    for (const auto& [name, value] : after) before[name] = value;  // of u3 too, while it is away
  }
  std::string expected;
  for (const std::string& event : long_events()) expected += event;
  for (RawClient& client : streams) {
    const Reply reply = client.read_reply(30s);
    EXPECT_EQ(reply.body, expected);
    EXPECT_TRUE(reply.complete);
  }
  callers.stop();
  for (const std::string& fault : callers.faults()) ADD_FAILURE() << fault;
  const std::size_t all = callers.answered() + streams.size();
  EXPECT_EQ(one.arrival_count() + two.arrival_count() + three.arrival_count(), all);
  EXPECT_GE(three.arrival_count(), 10u);
  EXPECT_TRUE(eventually(scaled(1s), [&] {
    return gateway.metric("headgate_requests_total", {{"route", "m"}, {"outcome", "ok"}}) == static_cast<double>(all);
  }));
  EXPECT_EQ(gateway.metric("headgate_attempts_total"), static_cast<double>(all));
  EXPECT_EQ(gateway.metric("headgate_config_version"), 6);
}

// Stage: a slot held by one request, another queued behind it. Who leaves while queued is forgotten within 1 s and
// never reaches the backend; who leaves a plain request or a stream that has begun is noticed there within 1 s.
TEST(Figures, ADepartureReachesTheBackendWithinASecond) {
  ScriptedUpstream upstream([](Exchange& x) {
    if (x.arrival().body.find("\"stream\":true") == std::string::npos) return static_cast<void>(x.wait_until_gone(30s));
    x.write(stream_head());
    for (int n = 0; n < 300; ++n) {
      x.write(chunk(content_event("w ")));
      if (!x.wait(100ms)) return;
    }
  });
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 1;
  GatewayProcess gateway(config);
  const auto queued = [&] { return gateway.metric("headgate_queued", {{"pool", "p"}}); };

  RawClient plain(gateway.port()), waiting(gateway.port());
  plain.send(chat_request(chat_body(false)));
  ASSERT_TRUE(upstream.await_arrivals(1));
  waiting.send(chat_request(chat_body(false)));
  ASSERT_TRUE(eventually(10s, [&] { return queued() == 1; }));
  waiting.close();
  EXPECT_TRUE(eventually(scaled(1s), [&] { return queued() == 0; }));

  const auto expect_noticed = [&](std::size_t count, Time left) {
    ASSERT_TRUE(eventually(scaled(2s), [&] { return upstream.abandoned().size() == count; }));
    EXPECT_LE(to_ms(upstream.abandoned().back().at - left), to_ms(scaled(1s)));
  };
  Time left = now();
  plain.close();
  expect_noticed(1, left);

  RawClient stream(gateway.port());
  stream.send(chat_request(chat_body(true)));
  stream.read_reply(10s, [](const Reply& r) { return content_of(r.body).size() >= 6; });
  left = now();
  stream.close();
  expect_noticed(2, left);
  EXPECT_TRUE(eventually(scaled(1s), [&] { return gateway.metric("headgate_backend_in_flight") == 0; }));
  EXPECT_EQ(upstream.arrival_count(), 2u);
  EXPECT_EQ(gateway.metric("headgate_cancelled_by_caller_total"), 3);
}

}  // namespace
}  // namespace headgate::support
