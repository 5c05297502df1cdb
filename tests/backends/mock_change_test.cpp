// Speed, capacity, restarts, slow and broken bytes of a mock server, as a caller sees them.
#include <gtest/gtest.h>

#include <memory>
#include <system_error>
#include <vector>

#include "mock_fixture.hpp"

namespace headgate::mock {
namespace {

const std::string ten_as_stream = R"(,"max_tokens":10,"stream":true)";

class MockBytes : public testing::TestWithParam<engine::Profile> {};
INSTANTIATE_TEST_SUITE_P(Profiles, MockBytes, testing::Values(instant, quick()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST_P(MockBytes, ADripIsWholeAndSlow) {
  Mock mock(GetParam());
  const Reply plain = support::ask_once(mock.port(), post_chat("hi", ten_as_stream));
  mock.control(R"({"fault":"drip","delay_ms":20,"bytes":100,"after_tokens":9,"count":1})");
  RawClient client(mock.port());
  const Time sent = support::now();
  const Reply reply = client.ask(post_chat("hi", ten_as_stream));
  EXPECT_EQ(reply.body, plain.body);
  const std::string tail = reply.body.substr(reply.body.rfind("\"delta\":{\"content\""));
  EXPECT_GE(reply.ended_at - sent, static_cast<std::int64_t>(tail.size() / 100) * 20ms);
  EXPECT_EQ(client.ask(post_chat("hi", ten_as_stream)).body, plain.body);  // on the same connection, as ever
}

TEST_P(MockBytes, AUnaryAnswerDripsFromItsFirstByte) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"drip","delay_ms":10,"bytes":40,"count":1})");
  RawClient client(mock.port());
  const Time sent = support::now();
  const Reply reply = client.ask(request("POST", "/v1/chat/completions", chat("hi"), "Connection: close\r\n"));
  EXPECT_TRUE(reply.complete);
  EXPECT_GE(reply.ended_at - sent, static_cast<std::int64_t>(reply.body.size() / 40) * 10ms);
  EXPECT_TRUE(client.closed_by_peer(5s));
}

TEST_P(MockBytes, AMalformedEventStandsBetweenTheOthers) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"malformed","after_tokens":4,"count":1})");
  const Reply reply = support::ask_once(mock.port(), post_chat("hi", ten_as_stream));
  EXPECT_EQ(content_events(reply), 10u);
  std::vector<std::string> broken;
  std::size_t place = 0, at = 0;
  for (const std::string& data : support::data_of(reply.body)) {
    if (data != "[DONE]" && !Json::accept(data)) {
      broken.push_back(data);
      at = place;
    }
    ++place;
  }
  EXPECT_EQ(broken.size(), 1u);
  EXPECT_EQ(at, 5u);  // behind the role and four tokens
}

TEST_P(MockBytes, AMalformedUnaryAnswerIsWholeBytesOfHalfAnAnswer) {
  Mock mock(GetParam());
  mock.control(R"({"fault":"malformed","count":1})");
  const Reply reply = support::ask_once(mock.port(), post_chat("hi"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.complete);
  EXPECT_FALSE(Json::accept(reply.body));
}

TEST(MockChange, FrozenMetricsStayUntilTheyAreCleared) {
  Mock mock(quick());
  const auto made = [&] {
    const Reply page = support::ask_once(mock.port(), request("GET", "/metrics"));
    return support::sum_of(support::parse_metrics(page.body), "vllm:generation_tokens_total");
  };
  mock.control(R"({"fault":"frozen_metrics"})");
  EXPECT_EQ(support::ask_once(mock.port(), post_chat("hi", R"(,"max_tokens":3)")).status, 200);
  EXPECT_EQ(made(), 0);
  mock.control(R"({"clear":"frozen_metrics"})");
  EXPECT_EQ(made(), 3);
}

// 20 steps of 2 ms at a twentieth of the speed are 800 ms.
TEST(MockChange, ASpeedIsThatOfTheStepsFromNowOn) {
  Mock mock(quick());
  mock.control(R"({"speed":0.05})");
  EXPECT_EQ(mock.state()["speed"], 0.05);
  RawClient client(mock.port());
  const Time sent = support::now();
  const Reply slow = client.ask(post_chat("hi", R"(,"max_tokens":20)"));
  EXPECT_GE(slow.ended_at - sent, 800ms);
  mock.control(R"({"speed":1})");
  EXPECT_EQ(mock.state()["speed"], 1);
}

TEST(MockChange, FewerSlotsLetThoseRunningEnd) {
  Mock mock(quick(4));
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto send = [&](std::uint32_t tokens) {
    clients.push_back(std::make_unique<RawClient>(mock.port()));
    clients.back()->send(post_chat("hi", R"(,"max_tokens":)" + std::to_string(tokens)));
  };
  for (int n = 0; n < 2; ++n) send(100'000);
  ASSERT_TRUE(eventually(5s, [&] { return mock.state()["running"] == 2; }));
  mock.control(R"({"slots":1})");
  send(1);
  ASSERT_TRUE(eventually(5s, [&] { return mock.state()["waiting"] == 1; }));
  EXPECT_EQ(mock.state()["running"], 2);
  clients[0].reset();
  ASSERT_TRUE(eventually(5s, [&] { return mock.state()["running"] == 1; }));
  EXPECT_EQ(mock.state()["waiting"], 1);
  mock.control(R"({"slots":60000})");
  EXPECT_EQ(mock.state()["slots"], 4);
  EXPECT_EQ(clients[2]->read_reply().status, 200);
}

TEST(MockChange, ARestartDropsConnectionsAndForgetsPrefixes) {
  Mock mock(quick());
  std::string words = "w0";
  for (int n = 1; n < 40; ++n) words += " w" + std::to_string(n);
  const auto cached = [&] {
    const Reply page = support::ask_once(mock.port(), request("GET", "/metrics"));
    return support::sum_of(support::parse_metrics(page.body), "vllm:prefix_cache_hits_total");
  };
  for (int n = 0; n < 2; ++n) support::ask_once(mock.port(), post_chat(words, R"(,"max_tokens":3)"));
  EXPECT_GT(cached(), 0);
  RawClient idle(mock.port()), busy(mock.port());
  busy.send(post_chat("hi", R"(,"max_tokens":100000)"));
  ASSERT_TRUE(eventually(5s, [&] { return mock.state()["running"] == 1; }));
  RawClient asks(mock.port());
  const Time told = support::now();
  const Reply reply = asks.ask(request("POST", "/control", R"({"restart":true,"down_ms":200})"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(Json::parse(reply.body)["listening"], false);
  EXPECT_EQ(Json::parse(reply.body)["running"], 0);
  EXPECT_TRUE(idle.closed_by_peer(5s));
  EXPECT_TRUE(busy.closed_by_peer(5s));
  const auto listens = [&] {
    try {
      const RawClient client(mock.port());
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  };
  ASSERT_TRUE(eventually(5s, listens));
  EXPECT_GE(support::now() - told, 200ms);
  support::ask_once(mock.port(), post_chat(words, R"(,"max_tokens":3)"));
  EXPECT_EQ(cached(), 0);
  EXPECT_EQ(mock.state()["faulted"], 1);
}

TEST(MockChange, APlanIsPlayed) {
  std::string problem;
  auto plan = read_fault_plan(R"({"at_ms":0,"replica":1,"fault":"status","status":503}
{"at_ms":0,"slots":2,"for_ms":300})",
                              2, problem);
  ASSERT_EQ(problem, "");
  MockOptions options;
  options.replicas = 2;
  Mock mock(quick(), options, std::move(plan));
  EXPECT_TRUE(eventually(5s, [&] { return mock.state(1)["slots"] == 2; }));
  EXPECT_EQ(support::ask_once(mock.port(0), post_chat("hi")).status, 200);
  EXPECT_EQ(support::ask_once(mock.port(1), post_chat("hi")).status, 503);
  EXPECT_TRUE(eventually(5s, [&] { return mock.state(0)["slots"] == 8 && mock.state(1)["slots"] == 8; }));
  EXPECT_EQ(mock.state(1)["faults"].size(), 1u);
}

}  // namespace
}  // namespace headgate::mock
