// Running out of file descriptors: accepting pauses without a busy loop, what is connected is served or told plainly,
// no backend is blamed for it, and all is well again when descriptors come back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "support/answers.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

// User and system time that the process has used.
Nanos cpu_time(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int n = 3; n < 14; ++n) fields >> skipped;
  long user = 0, system = 0;
  fields >> user >> system;
  return Nanos((user + system) * (1'000'000'000 / ::sysconf(_SC_CLK_TCK)));
}

std::vector<RawClient> idle_callers(std::uint16_t port, int count) {
  std::vector<RawClient> callers;
  for (int n = 0; n < count; ++n) callers.emplace_back(port);
  return callers;
}

class Descriptors : public testing::Test {
 protected:
  static nlohmann::json config_for(const ScriptedUpstream& upstream) {
    auto config = basic_config({});
    config["pools"]["p"]["backends"] = nlohmann::json::array({backend_config("u1", upstream.port(), 64)});
    config["pools"]["p"]["probe"] = {{"interval", "500ms"}, {"timeout", "500ms"}};
    return config;
  }
  // A whole answer, or a plain word on what is missing.
  static bool served(const Reply& reply) {
    EXPECT_TRUE(reply.status == 200 || reply.status == 503) << reply.raw;
    if (reply.status == 503) {
      EXPECT_EQ(plain_error_fault(reply), "");
      EXPECT_EQ(error_code_of(reply), "upstream_socket");
    }
    return reply.status == 200;
  }
  void expect_no_blame() const {
    EXPECT_EQ(gateway_.metric("headgate_attempt_failures_total"), 0);
    EXPECT_EQ(gateway_.metric("headgate_probe_failures_total"), 0);
    EXPECT_EQ(gateway_.metric("headgate_health_changes_total"), 0);
  }
  void expect_a_new_caller_is_served(Nanos within) const {
    const Time until = after(now(), within);
    RawClient fresh(gateway_.port());
    EXPECT_EQ(fresh.ask(chat_request(chat_body(false)), within).status, 200);
    EXPECT_LE(now(), until);
  }

  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{config_for(upstream_), {.descriptors_max = 64}};
};

TEST_F(Descriptors, RW22_RunningOutNeitherSpinsNorKillsTheListener) {
  RawClient established(gateway_.port()), admin(gateway_.admin_port());
  const std::string scrape =
      "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(gateway_.admin_port()) + "\r\n\r\n";
  EXPECT_EQ(established.ask(chat_request(chat_body(false))).status, 200);
  EXPECT_EQ(admin.ask(scrape).status, 200);
  auto idle = std::make_optional(idle_callers(gateway_.port(), 120));
  const auto lines_before = std::ranges::count(gateway_.output(), '\n');
  const Nanos used_before = cpu_time(gateway_.pid());
  EXPECT_EQ(gateway_.admin_get("/metrics").status, 200) << "some descriptors are left for the admin port";
  for (int n = 0; n < 10; ++n) {
    served(established.ask(chat_request(chat_body(false))));
    std::this_thread::sleep_for(500ms);  // the case's hold: 5 s with a request every half second
  }
  EXPECT_LE(to_ms(cpu_time(gateway_.pid()) - used_before), to_ms(scaled(1s)));
  EXPECT_LE(std::ranges::count(gateway_.output(), '\n') - lines_before, 50);
  const auto pauses = sum_of(parse_metrics(admin.ask(scrape).body), "headgate_accept_pauses_total");
  EXPECT_GE(pauses.value_or(0), 1);
  EXPECT_LE(pauses.value_or(0), 1000);
  idle.reset();
  expect_a_new_caller_is_served(scaled(1s));
  expect_no_blame();
}

// More requests at once than there are descriptors for connections to backends.
TEST_F(Descriptors, RW22_NoneForABackendIsAPlain503AndNobodysFault) {
  constexpr std::size_t count = 40;
  Event go;
  upstream_.set_script([&go](Exchange& exchange) {
    exchange.wait_for(go, 30s);
    exchange.write_last(plain_reply(200, good_body("m"), "Connection: close\r\n"));
  });
  std::vector<RawClient> callers = idle_callers(gateway_.port(), count);
  for (RawClient& caller : callers) caller.send(chat_request(chat_body(false)));
  ASSERT_TRUE(eventually(scaled(10s), [&] {
    return gateway_.metric("headgate_refusals_total", {{"code", "upstream_socket"}}) > 0;
  }));
  go.set();
  std::size_t refused = 0;
  for (RawClient& caller : callers) {
    const Reply reply = caller.read_reply(scaled(10s));
    if (served(reply)) continue;
    ++refused;
    EXPECT_GE(std::atoi(reply.head.get("retry-after").c_str()), 1);
    EXPECT_EQ(reply.head.get("x-should-retry"), "true");
    EXPECT_EQ(reply.head.get("x-headgate-refusal"), "upstream_socket");
    EXPECT_FALSE(reply.head.has("x-headgate-backend"));
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LT(refused, count);
  upstream_.set_script(good_answer());
  callers.clear();
  expect_a_new_caller_is_served(scaled(1s));
  expect_no_blame();
}

}  // namespace
}  // namespace headgate::support
