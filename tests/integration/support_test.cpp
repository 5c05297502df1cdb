// The test harness against itself: a scripted upstream and a raw client with nothing in between. What the integration
// tests conclude rests on these.
#include <gtest/gtest.h>

#include <thread>

#include "support/answers.hpp"
#include "support/prometheus.hpp"
#include "support/raw_client.hpp"
#include "support/scripted_upstream.hpp"

namespace headgate::support {
namespace {

TEST(Support, GoodUpstreamAnswersPlainAndStreamedRequests) {
  ScriptedUpstream upstream(good_answer());
  RawClient client(upstream.port());
  const Reply plain = client.ask(chat_request(chat_body(false)));
  ASSERT_EQ(plain.status, 200);
  EXPECT_TRUE(plain.complete);
  EXPECT_EQ(nlohmann::json::parse(plain.body)["usage"]["completion_tokens"], 5);
  EXPECT_GE(plain.took(), 20ms);
  const Reply streamed = client.ask(chat_request(chat_body(true)));
  EXPECT_EQ(content_of(streamed.body), "one two three four five");
  EXPECT_EQ(data_of(streamed.body).size(), 8u);
  EXPECT_EQ(last_data_of(streamed.body), "[DONE]");
  const Reply counted = client.ask(chat_request(chat_body(true, "m", R"(,"stream_options":{"include_usage":true})")));
  EXPECT_EQ(data_of(counted.body).size(), 9u);
  EXPECT_EQ(upstream.arrival_count(), 3u);
  EXPECT_EQ(upstream.connection_count(), 1u);
  EXPECT_EQ(upstream.arrivals()[2].on_connection, 2u);
  EXPECT_EQ(upstream.arrivals()[0].head.get("authorization"), "Bearer GW1");
}

TEST(Support, WritesArriveAsTheyWereWritten) {
  ScriptedUpstream upstream([](Exchange& x) {
    x.write(stream_head());
    for (int n = 0; n < 3; ++n) {
      if (!x.wait(50ms)) return;
      x.write(chunk("data: " + std::to_string(n) + "\n\n"));
    }
    x.write_last(final_chunk());
  });
  RawClient client(upstream.port());
  const Reply reply = client.ask(chat_request(chat_body(true)));
  ASSERT_EQ(reply.pieces.size(), 3u);
  EXPECT_GE(reply.pieces[2].at - reply.pieces[0].at, 90ms);
  EXPECT_EQ(reply.arrival_of(reply.body.size() - 1), reply.pieces[2].at);
  EXPECT_EQ(reply.arrival_of(reply.body.size()), Time::max());
  const auto written = upstream.written();
  ASSERT_EQ(written.size(), 5u);
  EXPECT_LE(written[2].at, reply.pieces[1].at);
}

TEST(Support, ResetCloseAndTruncationAreToldApart) {
  ScriptedUpstream upstream([](Exchange& x) {
    x.write(stream_head() + chunk("data: 1\n\n"));
    if (x.arrival().target() == "/reset") return x.reset();
    x.close();
  });
  RawClient first(upstream.port());
  first.send(request("POST", "/reset"));
  const Reply reset = first.read_reply();
  EXPECT_TRUE(reset.reset && !reset.closed && !reset.complete);
  RawClient second(upstream.port());
  const Reply cut = second.ask(request("POST", "/close"));
  EXPECT_TRUE(!cut.reset && cut.closed && !cut.complete);
  EXPECT_EQ(cut.body, "data: 1\n\n");
}

TEST(Support, SeesThePeerLeaveAndCountsOpenRequests) {
  ScriptedUpstream upstream(silent());
  RawClient client(upstream.port());
  client.send(chat_request(chat_body(false)));
  ASSERT_TRUE(upstream.await_arrivals(1));
  EXPECT_EQ(upstream.open_now(), 1u);
  const Time left = now();
  client.close();
  EXPECT_EQ(upstream.open_now(), 0u);
  ASSERT_TRUE(eventually(2s, [&] { return upstream.abandoned().size() == 1; }));
  EXPECT_LE(upstream.abandoned()[0].at - left, scaled(100ms));
}

TEST(Support, ServesSixtyFourConnectionsAtOnce) {
  Event go;
  ScriptedUpstream upstream([&](Exchange& x) {
    if (x.wait_for(go)) x.write_last(plain_reply(200, "{}"));
  });
  std::vector<RawClient> clients;
  for (int n = 0; n < 64; ++n) clients.emplace_back(upstream.port()).send(chat_request(chat_body(false)));
  ASSERT_TRUE(upstream.await_arrivals(64));
  EXPECT_EQ(upstream.open_max(), 64u);
  go.set();
  for (RawClient& client : clients) EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(upstream.open_now(), 0u);
}

TEST(Support, KeepsProbesApartAndDecodesChunkedRequests) {
  ScriptedUpstream upstream(good_answer());
  EXPECT_EQ(ask_once(upstream.port(), request("GET", "/health", {}, {})).status, 200);
  EXPECT_EQ(ask_once(upstream.port(),
                     "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
                .status,
            200);
  EXPECT_EQ(upstream.probes().size(), 1u);
  ASSERT_EQ(upstream.arrival_count(), 1u);
  EXPECT_EQ(upstream.arrivals()[0].body, "abcde");
}

TEST(Support, RefusedPortRefuses) {
  const RefusedPort refused;
  EXPECT_THROW(RawClient(refused.port()), std::system_error);
}

TEST(Support, ReadsPipelinedRepliesOneByOneAndCanStopEarly) {
  ScriptedUpstream upstream(good_answer());
  RawClient client(upstream.port());
  client.send(chat_request(chat_body(true)) + chat_request(chat_body(false)));
  const Reply early = client.read_reply(5s, [](const Reply& r) { return r.body.find("two") != std::string::npos; });
  EXPECT_EQ(early.status, 200);
  const Reply whole = client.read_reply(5s);
  EXPECT_TRUE(whole.complete);
  EXPECT_EQ(last_data_of(whole.body), "[DONE]");
  const Reply second = client.read_reply(5s);
  EXPECT_EQ(nlohmann::json::parse(second.body)["usage"]["prompt_tokens"], 7);
  EXPECT_FALSE(RawClient(upstream.port()).closed_by_peer(50ms));
}

TEST(Support, SplitsEventsWithEveryLineEnd) {
  const std::vector<std::string> wanted{"a", "b\nc", "d"};
  EXPECT_EQ(data_of("data: a\n\n: note\n\ndata:b\ndata: c\n\nevent: x\ndata: d\n"), wanted);
  EXPECT_EQ(data_of("data: a\r\n\r\n: note\r\n\r\ndata:b\r\ndata: c\r\n\r\nevent: x\r\ndata: d"), wanted);
}

TEST(Support, FindsMetricsByLabels) {
  const auto samples = parse_metrics("# TYPE a counter\na{x=\"1\",y=\"p/q\"} 2\na{x=\"2\",y=\"p/q\"} 3.5\nb 1e3\n");
  EXPECT_EQ(sum_of(samples, "a"), 5.5);
  EXPECT_EQ(sum_of(samples, "a", {{"x", "2"}}), 3.5);
  EXPECT_EQ(sum_of(samples, "b"), 1000);
  EXPECT_FALSE(sum_of(samples, "a", {{"x", "3"}}));
}

}  // namespace
}  // namespace headgate::support
