// Reloads one after another under requests and live streams. `run reloads` shows the same under wrk, at one a second.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"
#include "support/steady_callers.hpp"

namespace headgate::support {
namespace {

using Counters = std::map<std::string, double>;

Counters counters_of(const GatewayProcess& gateway) {
  Counters counters;
  for (const Sample& sample : parse_metrics(gateway.metrics_text())) {
    if (!sample.name.ends_with("_total") && !sample.name.ends_with("_count")) continue;
    std::string key = sample.name;
    for (const auto& [label, value] : sample.labels) key += " " + label + "=" + value;
    counters[key] = sample.value;
  }
  return counters;
}

// One event each 10 ms, for as long as the reloads take.
Script paced(Event& over) {
  return [&over](Exchange& x) {
    x.write(stream_head());
    x.write(chunk(role_event()));
    for (int n = 0; n == 0 || !over.wait(10ms); ++n) {
      if (!x.write(chunk(content_event("word " + std::to_string(n) + " ")))) return;
    }
    x.write(chunk(finish_event()) + chunk(done_event()));
    x.write_last(final_chunk());
  };
}

// What the backend has sent as an answer to that request, without its framing.
std::string sent_for(const ScriptedUpstream& upstream, std::size_t arrival) {
  std::string raw;
  for (const Written& written : upstream.written())
    if (written.arrival == arrival) raw += written.bytes;
  return decode_chunks(std::string_view(raw).substr(raw.find("\r\n\r\n") + 4)).body;
}

// Stage: 20 reloads, each adds a second backend or takes it away, beside 250 requests a second and 20 streams that are
// open all the while. No request fails, each stream is what its backend sent, no counter falls.
TEST(ReloadStreams, TwentyReloadsLoseNothing) {
  constexpr int reloads = 20, streams = 20;
  Event over;
  ScriptedUpstream one(good_answer({.delay = 1ms})), two(good_answer({.delay = 1ms})), slow(paced(over));
  auto config = basic_config({&one});
  config["workers"] = 2;
  config["log"]["access"] = "off";
  config["pools"]["paced"] = config["pools"]["p"];
  config["pools"]["paced"]["backends"] = nlohmann::json::array({backend_config("s", slow.port(), 64)});
  config["routes"]["paced"] = config["routes"]["m"];
  config["routes"]["paced"]["pools"] = {"paced"};
  auto wider = config;
  wider["pools"]["p"]["backends"].push_back(backend_config("u2", two.port()));
  GatewayProcess gateway(config);

  std::vector<RawClient> callers;
  for (int n = 0; n < streams; ++n) {
    callers.emplace_back(gateway.port());
    callers.back().send(chat_request(chat_body(true, "paced")));
    ASSERT_TRUE(slow.await_arrivals(callers.size()));  // so that the n-th arrival is his
  }
  SteadyCallers steady(gateway.port(), 5, 20ms);
  Counters before = counters_of(gateway);
  for (int n = 0; n < reloads; ++n) {
    const std::size_t answered = steady.answered(), at_two = two.arrival_count();
    gateway.rewrite_config(n % 2 == 0 ? wider : config);
    ASSERT_EQ(gateway.admin_post("/admin/reload").status, 200);
    ASSERT_TRUE(
        eventually(30s, [&] { return n % 2 == 0 ? two.arrival_count() > at_two : steady.answered() > answered; }))
        << "reload " << n << " is not in use";
    const Counters now_at = counters_of(gateway);
    for (const auto& [name, value] : now_at) {
      EXPECT_GE(value, before[name]) << name << " after reload " << n;
      before[name] = value;  // one of a backend that is taken away is compared when it is back
    }
  }
  steady.stop();
  over.set();
  EXPECT_EQ(gateway.metric("headgate_config_version"), reloads + 1);
  for (const std::string& fault : steady.faults()) ADD_FAILURE() << fault;
  for (std::size_t n = 0; n < callers.size(); ++n) {
    const Reply reply = callers[n].read_reply(30s);
    EXPECT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.complete);
    EXPECT_EQ(reply.body, sent_for(slow, n)) << "stream " << n;
  }
}

}  // namespace
}  // namespace headgate::support
