// An upstream failing inside a reply: cases RW-04 and RW-05.
#include <gtest/gtest.h>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

// Thirty content events, then, once the caller has them all, the end that the test chose.
void expect_one_error_event_after_thirty(bool with_reset) {
  Event caller_has_thirty;
  std::string thirty;
  for (int n = 1; n <= 30; ++n) thirty += content_event("w" + std::to_string(n) + " ");
  ScriptedUpstream dying([&](Exchange& x) {
    x.write(stream_head());
    for (int n = 1; n <= 30; ++n) x.write(chunk(content_event("w" + std::to_string(n) + " ")));
    if (!x.wait_for(caller_has_thirty)) return;
    with_reset ? x.reset() : x.close();
  });
  ScriptedUpstream other(good_answer());
  auto config = basic_config({&dying, &other});
  config["routes"]["m"]["retry"]["attempts_max"] = 2;
  GatewayProcess gateway(config);
  RawClient client(gateway.port());
  client.send(chat_request(chat_body(true)));
  client.read_reply(10s, [&](const Reply& r) { return r.body.size() >= thirty.size(); });
  caller_has_thirty.set();
  const Reply reply = client.read_reply(10s);

  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.complete || reply.closed) << "the reply must end";
  ASSERT_EQ(reply.body.substr(0, thirty.size()), thirty);
  const auto after_content = data_of(reply.body.substr(thirty.size()));
  ASSERT_EQ(after_content.size(), 1u) << reply.body;
  const auto error = nlohmann::json::parse(after_content[0], nullptr, false);
  ASSERT_TRUE(error.is_object() && error.contains("error") && error["error"].is_object()) << after_content[0];
  EXPECT_FALSE(error["error"].value("message", "").empty());
  EXPECT_EQ(count_of(reply.body, "\"finish_reason\":\"stop\""), 0u);
  EXPECT_EQ(count_of(reply.body, "[DONE]"), 0u);
  EXPECT_EQ(dying.arrival_count(), 1u);
  EXPECT_EQ(other.arrival_count(), 0u);
  EXPECT_EQ(gateway.access_lines(1)[0].value("outcome", ""), "cut");
  EXPECT_EQ(gateway.metric("headgate_requests_total", {{"route", "m"}, {"outcome", "cut"}}), 1);
  EXPECT_EQ(gateway.metric("headgate_requests_total", {{"outcome", "ok"}}), 0);
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 1);
}

// Stage: two upstreams, one retry allowed, streamed. The first sends 30 content events and resets the connection. The
// caller gets the 30 once and in order, then exactly one error event and nothing more: no finish reason "stop", by our
// choice no [DONE]. The second upstream sees nothing; the request has failed and the first's failures go up by one.
TEST(Midstream, RW04_AResetAfterThirtyEventsIsOneErrorEvent) { expect_one_error_event_after_thirty(true); }

// The same with an orderly close that leaves out the final zero-length chunk.
TEST(Midstream, RW04_ACloseWithoutTheFinalChunkIsOneErrorEvent) { expect_one_error_event_after_thirty(false); }

Script refuses_in_its_stream() {
  return [](Exchange& x) {
    x.write(stream_head() + chunk(": one\n\n") + chunk(": two\n\n"));
    x.write(chunk(error_event("overloaded")));
    x.close();
  };
}

// Stage: two upstreams, falling back allowed. The first sends a 200 head, two comments, then one error event with code
// "overloaded", and closes; the second is good. The caller sees only the second's five content events and no error.
// One arrival at each; the first has one failure.
TEST(Midstream, RW05_AnErrorAsFirstEventFallsBack) {
  ScriptedUpstream refusing(refuses_in_its_stream()), good(good_answer());
  auto config = basic_config({&refusing, &good});
  config["routes"]["m"]["retry"]["attempts_max"] = 2;
  GatewayProcess gateway(config);
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(true)));

  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(count_of(reply.body, "\"content\":\""), 5u);
  EXPECT_EQ(content_of(reply.body), "one two three four five");
  EXPECT_EQ(last_data_of(reply.body), "[DONE]");
  EXPECT_EQ(count_of(reply.body, "\"error\""), 0u);
  EXPECT_EQ(refusing.arrival_count(), 1u);
  EXPECT_EQ(good.arrival_count(), 1u);
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 1);
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u2"}}), 0);
}

// The same without the second upstream: a plain error and never 200; ours is 503, as the upstream says that it is
// overloaded.
TEST(Midstream, RW05_AnErrorAsFirstEventWithNoOtherUpstreamIsAPlainError) {
  ScriptedUpstream refusing(refuses_in_its_stream());
  GatewayProcess gateway(basic_config({&refusing}));
  const Reply reply = ask_once(gateway.port(), chat_request(chat_body(true)));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(plain_error_fault(reply), "");
  EXPECT_EQ(refusing.arrival_count(), 1u);
  EXPECT_EQ(gateway.metric("headgate_attempt_failures_total", {{"backend", "p/u1"}}), 1);
}

}  // namespace
}  // namespace headgate::support
