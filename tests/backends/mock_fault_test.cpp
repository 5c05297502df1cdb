// Faults and departures as a caller sees them, over real sockets.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "mock_fixture.hpp"

namespace headgate::mock {
namespace {

const std::string as_stream = R"(,"max_tokens":10,"stream":true,"stream_options":{"include_usage":true})";
const std::string unary = R"(,"max_tokens":10)";

// Every fault works the same paced and unpaced.
class MockFault : public testing::TestWithParam<engine::Profile> {};
INSTANTIATE_TEST_SUITE_P(Profiles, MockFault, testing::Values(instant, quick()),
                         [](const auto& tested) { return std::string(tested.param.name); });

bool answers_well(const Mock& mock) {
  return content_events(support::ask_once(mock.port(), post_chat("hi", as_stream))) == 10;
}

TEST_P(MockFault, ResetComesAfterTheGivenTokens) {
  Mock mock(GetParam());
  for (const std::size_t k : {std::size_t{0}, std::size_t{4}}) {
    mock.control(R"({"fault":"reset","count":1,"after_tokens":)" + std::to_string(k) + "}");
    const Reply reply = support::ask_once(mock.port(), post_chat("hi", as_stream));
    EXPECT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.reset);
    EXPECT_FALSE(reply.complete);
    EXPECT_EQ(content_events(reply), k);
    EXPECT_EQ(support::data_of(reply.body).size(), k + 1);
  }
  EXPECT_TRUE(answers_well(mock));
  EXPECT_EQ(mock.state()["faulted"], 2);
  EXPECT_EQ(mock.state()["running"], 0);
}

TEST_P(MockFault, ResetCutsAUnaryBodyInHalf) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"reset","count":1})");
  const Reply reply = support::ask_once(mock.port(), post_chat("hi", unary));
  EXPECT_TRUE(reply.reset);
  EXPECT_EQ(reply.body.size(), std::stoul(reply.head.get("content-length")) / 2);
  EXPECT_EQ(support::ask_once(mock.port(), post_chat("hi", unary)).status, 200);
}

TEST_P(MockFault, NoDoneEndsInGoodOrderWithoutFinish) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"no_done","count":1,"after_tokens":3})");
  RawClient client(mock.port());
  const Reply reply = client.ask(post_chat("hi", as_stream));
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(content_events(reply), 3u);
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
  EXPECT_EQ(reply.body.find("\"finish_reason\":\""), std::string::npos);
  EXPECT_EQ(reply.body.find("usage"), std::string::npos);
  EXPECT_EQ(content_events(client.ask(post_chat("hi", as_stream))), 10u);
}

TEST_P(MockFault, NoDoneTruncatesAUnaryBody) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"no_done"})");
  const Reply reply = support::ask_once(mock.port(), post_chat("hi", unary));
  EXPECT_TRUE(reply.closed);
  EXPECT_FALSE(reply.reset);
  EXPECT_FALSE(reply.complete);
  EXPECT_FALSE(reply.body.empty());
}

TEST_P(MockFault, StallSaysNothingMoreUntilTheCallerLeaves) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"stall","after_tokens":2})");
  auto client = std::make_unique<RawClient>(mock.port());
  client->send(post_chat("hi", as_stream));
  EXPECT_EQ(content_events(client->read_reply(5s, [](const Reply& r) { return content_events(r) == 2; })), 2u);
  EXPECT_EQ(content_events(client->read_reply(200ms)), 2u);
  EXPECT_EQ(mock.state()["open"], 1);
  client.reset();
  EXPECT_TRUE(eventually(5s, [&] { return mock.state()["open"] == 0; }));
  EXPECT_EQ(mock.state()["cancelled"], 1);
}

TEST_P(MockFault, AnAnswerShorterThanTheFaultIsWhole) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"reset","after_tokens":11})");
  EXPECT_TRUE(answers_well(mock));
}

TEST_P(MockFault, StatusIsAnsweredWithItsAdviceAndBody) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"status","status":503,"retry_after":7,"count":1})");
  RawClient client(mock.port());
  Reply reply = client.ask(post_chat("hi", as_stream));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.head.get("retry-after"), "7");
  EXPECT_EQ(support::plain_error_fault(reply), "");
  mock.control(R"({"fault":"status","status":418,"body":{"teapot":true},"count":1})");
  reply = client.ask(post_chat("hi"));
  EXPECT_EQ(reply.status, 418);
  EXPECT_FALSE(reply.head.has("retry-after"));
  EXPECT_EQ(reply.body, R"({"teapot":true})");
  mock.control(R"({"fault":"status","status":500,"body":"oops","count":1})");
  reply = client.ask(post_chat("hi"));
  EXPECT_EQ(reply.head.get("content-type"), "text/plain");
  EXPECT_EQ(reply.body, "oops");
  EXPECT_EQ(client.ask(post_chat("hi")).status, 200);
}

TEST_P(MockFault, InBandErrorIsACommentAndAnErrorEvent) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"in_band_error","type":"overloaded"})");
  RawClient client(mock.port());
  Reply reply = client.ask(post_chat("hi", as_stream));
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.complete);
  EXPECT_TRUE(reply.body.starts_with(": "));
  const auto data = support::data_of(reply.body);
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(Json::parse(data[0])["error"]["type"], "overloaded");
  reply = client.ask(post_chat("hi", unary));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(Json::parse(reply.body)["error"]["code"], "overloaded");
}

TEST_P(MockFault, SlowHeadBeginsLate) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"slow_head","delay_ms":150,"count":2})");
  for (const std::string& how : {as_stream, unary}) {
    const Reply reply = support::ask_once(mock.port(), post_chat("hi", how));
    EXPECT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.complete);
    EXPECT_GE(reply.head_at - reply.sent, 150ms);
  }
  EXPECT_TRUE(answers_well(mock));
}

TEST_P(MockFault, HangReadsAndNeverAnswers) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"hang","count":1})");
  auto client = std::make_unique<RawClient>(mock.port());
  EXPECT_EQ(client->ask(post_chat("hi", unary), 200ms).raw, "");
  EXPECT_EQ(mock.state()["open"], 1);
  EXPECT_EQ(support::ask_once(mock.port(), request("GET", "/health")).status, 200);
  client.reset();
  EXPECT_TRUE(eventually(5s, [&] { return mock.state()["open"] == 0; }));
  EXPECT_TRUE(answers_well(mock));
}

TEST_P(MockFault, HealthIsHitOnlyWhereAsked) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"status","status":500})");
  EXPECT_EQ(support::ask_once(mock.port(), request("GET", "/health")).status, 200);
  mock.control(R"({"fault":"status","status":500,"health":true})");
  EXPECT_EQ(support::ask_once(mock.port(), request("GET", "/health")).status, 500);
  mock.control(R"({"clear":true})");
  EXPECT_EQ(support::ask_once(mock.port(), request("GET", "/health")).status, 200);
}

TEST_P(MockFault, RefuseClosesThePortAndKeepsOpenConnections) {
  MockOptions options;
  options.control_port = support::free_port();
  Mock mock(GetParam(), options);
  RawClient open(mock.port());
  EXPECT_EQ(open.ask(post_chat("hi", unary)).status, 200);
  RawClient control(mock.control_port());
  EXPECT_EQ(control.ask(request("POST", "/control", R"({"fault":"refuse"})")).status, 200);
  EXPECT_THROW(RawClient{mock.port()}, std::system_error);
  EXPECT_EQ(open.ask(post_chat("hi", unary)).status, 200);
  EXPECT_EQ(Json::parse(control.ask(request("GET", "/control")).body)["listening"], false);
  EXPECT_EQ(control.ask(post_chat("hi", unary)).status, 404);
  EXPECT_EQ(control.ask(request("POST", "/control", R"({"clear":true})")).status, 200);
  EXPECT_TRUE(answers_well(mock));
  EXPECT_EQ(open.ask(post_chat("hi", unary)).status, 200);
}

TEST(MockControlPort, EveryReplicaHasFaultsOfItsOwn) {
  MockOptions options;
  options.replicas = 2;
  Mock mock(instant, options);
  mock.control(R"({"fault":"status","status":500})");
  EXPECT_EQ(support::ask_once(mock.port(0), post_chat("hi")).status, 500);
  EXPECT_EQ(support::ask_once(mock.port(1), post_chat("hi")).status, 200);
}

TEST(MockWork, CountsWhatItServes) {
  Mock mock(quick());
  RawClient client(mock.port());
  for (int i = 0; i < 3; ++i) client.ask(post_chat("hi", as_stream));
  const Json state = mock.state();
  EXPECT_EQ(state["served"], 3);
  EXPECT_EQ(state["open"], 0);
  EXPECT_EQ(state["cancelled"], 0);
  EXPECT_EQ(state["connections"], 2);  // this one and the asking one
  EXPECT_EQ(state["faults"], Json::array());
}

TEST(MockWork, ACallerWhoLeavesFreesItsSlotAtOnce) {
  Mock mock(quick(1));
  for (const bool stream : {false, true}) {
    auto running = std::make_unique<RawClient>(mock.port());
    running->send(post_chat("hi", std::string(R"(,"max_tokens":100000)") + (stream ? R"(,"stream":true)" : "")));
    ASSERT_TRUE(eventually(5s, [&] { return mock.state()["running"] == 1; }));
    RawClient waiting(mock.port());
    waiting.send(post_chat("hi", unary));
    ASSERT_TRUE(eventually(5s, [&] { return mock.state()["waiting"] == 1; }));
    running.reset();
    EXPECT_EQ(waiting.read_reply(5s).status, 200);
  }
  const Json state = mock.state();
  EXPECT_EQ(state["cancelled"], 2);
  EXPECT_EQ(state["open"], 0);
  EXPECT_EQ(state["running"], 0);
}

TEST(MockWork, AWaitingCallerWhoLeavesGivesUpItsPlace) {
  Mock mock(quick(1, 1));
  auto running = std::make_unique<RawClient>(mock.port());
  running->send(post_chat("hi", R"(,"max_tokens":100000)"));
  ASSERT_TRUE(eventually(5s, [&] { return mock.state()["running"] == 1; }));
  auto waiting = std::make_unique<RawClient>(mock.port());
  waiting->send(post_chat("hi"));
  ASSERT_TRUE(eventually(5s, [&] { return mock.state()["waiting"] == 1; }));
  const Reply refused = support::ask_once(mock.port(), post_chat("hi"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(support::error_code_of(refused), "queue_full");
  EXPECT_EQ(refused.head.get("retry-after"), "1");
  waiting.reset();
  EXPECT_TRUE(eventually(5s, [&] { return mock.state()["waiting"] == 0; }));
}

TEST(MockWork, WaitingRequestsAreServedInOrderOfArrival) {
  Mock mock(quick(1));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (std::size_t i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<RawClient>(mock.port()));
    clients.back()->send(post_chat("hi", R"(,"max_tokens":30)"));
    ASSERT_TRUE(eventually(
        5s, [&] { return mock.state()["open"].get<std::size_t>() + mock.state()["served"].get<std::size_t>() > i; }));
  }
  Time last{};
  for (const auto& client : clients) {
    const Reply reply = client->read_reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_GE(reply.ended_at, last);
    last = reply.ended_at;
  }
}

TEST(MockWork, AReaderThatReadsNothingIsDropped) {
  engine::Profile profile = quick();
  profile.step_fixed = 10us;
  Mock mock(profile);
  RawClient client(mock.port());
  client.send(post_chat("hi", R"(,"max_tokens":131072,"stream":true)"));  // 26 MB
  EXPECT_TRUE(eventually(60s, [&] { return mock.state()["cancelled"] == 1; }));
  EXPECT_EQ(mock.state()["running"], 0);
}

TEST(MockWork, ManyStreamsShareOneReplica) {
  Mock mock(quick(200));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 150; ++i) {
    clients.push_back(std::make_unique<RawClient>(mock.port()));
    clients.back()->send(post_chat("stream " + std::to_string(i), R"(,"max_tokens":40,"stream":true)"));
  }
  for (const auto& client : clients) EXPECT_EQ(content_events(client->read_reply(30s)), 40u);
  EXPECT_EQ(mock.state()["served"], 150);
}

}  // namespace
}  // namespace headgate::mock
