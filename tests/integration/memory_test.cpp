// What the gateway holds in memory while thousands are connected: the formula of README "Memory" within a fifth.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "support/answers.hpp"
#include "support/child_process.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

constexpr double kib = 1.0 / 1024;  // in MiB, as all here

double formula(double connections, double in_flight, double stalled) {
  return (10 * 1024 + 3.3 * connections + 8 * in_flight + 32 * stalled) * kib;
}

void expect_within_a_fifth(double measured, double expected) {
  std::cout << "resident " << measured << " MiB, by the formula " << expected << " MiB\n";
  EXPECT_LE(measured, 1.2 * expected);
  EXPECT_GE(measured, 0.8 * expected);
}

// As many descriptors as this process may have; the number.
std::size_t raise_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

struct Fleet {
  explicit Fleet(const std::string& fault, std::uint32_t connections_max = 20000) : mock({"--profile", "instant"}) {
    if (!fault.empty()) {
      const Reply reply =
          ask_once(mock.port(), request("POST", "/control", fault, "Content-Type: application/json\r\n"));
      EXPECT_EQ(reply.status, 200) << reply.raw;
    }
    auto config = basic_config({});
    config["pools"]["p"]["backends"].push_back(backend_config("u1", mock.port(), 20000));
    config["pools"]["q"] = config["pools"]["p"];
    config["pools"]["q"]["backends"] = nlohmann::json::array({backend_config("u2", other.port())});
    config["routes"]["other"] = config["routes"]["m"];
    config["routes"]["other"]["pools"] = {"q"};
    for (const char* pool : {"p", "q"}) config["pools"][pool]["probe"]["interval"] = "1h";
    config["listen"]["connections_max"] = connections_max;
    config["limits"]["write_stall"] = "10m";
    for (const char* limit : {"first_byte", "first_token", "idle", "total_unary", "total_stream"})
      config["routes"]["m"]["timeouts"][limit] = "1h";
    gateway.emplace(config);
  }
  double in_flight() const { return gateway->metric("headgate_backend_in_flight"); }

  MockProcess mock, other{{"--profile", "instant"}};
  std::optional<GatewayProcess> gateway;
};

std::string stream_of_1k(int tokens) {
  return chat_request(chat_body(
      true, "m", ",\"max_tokens\":" + std::to_string(tokens) + ",\"note\":\"" + std::string(900, 'w') + "\""));
}

struct Memory : testing::Test {
  void SetUp() override {
    if (product_sanitized()) GTEST_SKIP() << "sanitizers cost and hold what the product does not";
  }
};

TEST_F(Memory, AnOpenStreamOf1KBody) {
  constexpr std::size_t streams = 5000;
  if (raise_descriptors() < 2 * streams + 100) GTEST_SKIP() << "needs 10,100 descriptors";
  Fleet fleet(R"({"fault":"stall","after_tokens":2})");
  ask_once(fleet.gateway->port(), request("GET", "/v1/models"));
  const double idle = fleet.gateway->resident_mib();
  std::vector<RawClient> callers;
  callers.reserve(streams);
  const std::string bytes = stream_of_1k(50);
  for (std::size_t n = 0; n < streams; ++n) {
    callers.emplace_back(fleet.gateway->port());
    ASSERT_TRUE(callers.back().send(bytes));
  }
  ASSERT_TRUE(eventually(60s, [&] { return fleet.in_flight() == streams; }));
  for (RawClient& caller : callers) {
    const Reply reply = caller.read_reply(30s, [](const Reply& r) { return !content_of(r.body).empty(); });
    ASSERT_EQ(reply.status, 200) << reply.raw;
  }
  const double held = fleet.gateway->resident_mib();
  EXPECT_LE((held - idle) / streams, 16 * kib);
  expect_within_a_fifth(held, formula(streams, streams, 0));
}

TEST_F(Memory, AnIdleConnection) {
  constexpr std::size_t count = 5000;
  if (raise_descriptors() < count + 100) GTEST_SKIP() << "needs 5,100 descriptors";
  Fleet fleet("");
  std::vector<RawClient> callers;
  for (std::size_t n = 0; n < count; ++n) {
    callers.emplace_back(fleet.gateway->port());
    ASSERT_EQ(callers.back().ask(request("GET", "/v1/models")).status, 200);
  }
  expect_within_a_fifth(fleet.gateway->resident_mib(), formula(count, 0, 0));
}

Nanos other_callers_p99(const Fleet& fleet) {
  constexpr std::size_t requests = 1000;
  RawClient client(fleet.gateway->port());
  const std::string bytes = chat_request(chat_body(false, "other", ",\"max_tokens\":5"));
  std::vector<Nanos> times;
  for (std::size_t n = 0; n < requests; ++n) {
    const Time begun = now();
    EXPECT_EQ(client.ask(bytes).status, 200);
    times.push_back(now() - begun);
  }
  std::sort(times.begin(), times.end());
  return times[requests * 99 / 100];
}

TEST_F(Memory, StalledReaders) {
  constexpr std::size_t count = 9000;
  if (raise_descriptors() < 2 * count + 100) GTEST_SKIP() << "needs 18,100 descriptors";
  Fleet fleet("");
  Nanos before = other_callers_p99(fleet);
  for (int again = 0; again < 4; ++again) before = std::min(before, other_callers_p99(fleet));
  std::vector<Socket> callers;
  callers.reserve(count);
  const std::string bytes = stream_of_1k(700);
  for (std::size_t n = 0; n < count; ++n) {
    callers.push_back(connect_to_loopback(fleet.gateway->port(), 5s, 2048));
    ASSERT_TRUE(send_all(callers.back(), bytes, now() + 10s));
  }
  ASSERT_TRUE(eventually(60s, [&] { return fleet.in_flight() >= 0.99 * count; })) << fleet.in_flight();
  double relayed = 0;
  int unchanged = 0;  // polls in a row: every stream is stalled, or has ended
  ASSERT_TRUE(eventually(60s, [&] {
    const double events = fleet.gateway->metric("headgate_stream_events_total");
    unchanged = std::exchange(relayed, events) == events ? unchanged + 1 : 0;
    return unchanged == 20;
  }));
  expect_within_a_fifth(fleet.gateway->resident_mib(), formula(count, count, count));
  Nanos during{};  // measured again while the kernel's window probes, frequent at first, take the CPU
  EXPECT_TRUE(eventually(30s, [&] { return (during = other_callers_p99(fleet)) < before * 12 / 10; }));
  std::cout << "another caller's p99 " << to_ms(before) << " ms, with the stalled readers " << to_ms(during) << " ms\n";
}

}  // namespace
}  // namespace headgate::support
