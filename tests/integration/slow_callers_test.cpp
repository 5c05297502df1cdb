// Callers who send a byte now and then (slowloris), by the thousand, while others are served.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "support/answers.hpp"
#include "support/child_process.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"

namespace headgate::support {
namespace {

struct Trickle {
  Socket socket;
  Time begun{}, ended = never;
  std::string said;
  bool body = false;
};

// Everybody's next byte each half second; who is cut is noted when it happens. Until all are.
void trickle_all(std::vector<Trickle>& all, Time until) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (Trickle& one : all) {
    epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.ptr = &one}};
    ASSERT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, one.socket.descriptor(), &event), 0);
  }
  std::size_t open = all.size();
  std::array<epoll_event, 256> events;
  for (Time next = now(); open > 0 && now() < until;) {
    if (now() >= next) {
      for (Trickle& one : all)
        if (one.ended == never) send_all(one.socket, "x", now() + 1ms);
      next += 500ms;
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::max(next - now(), Nanos(0)));
    const int ready = ::epoll_wait(epoll, events.data(), events.size(), static_cast<int>(wait.count()));
    for (int n = 0; n < ready; ++n) {
      Trickle& one = *static_cast<Trickle*>(events[static_cast<std::size_t>(n)].data.ptr);
      one.said += receive(one.socket, now()).bytes;
      one.ended = now();
      --open;
      ::epoll_ctl(epoll, EPOLL_CTL_DEL, one.socket.descriptor(), nullptr);
    }
  }
  ::close(epoll);
}

// Stage: 2,000 heads and 2,000 bodies that come a byte each half second. A head has limits.head_time, here 3 s; a body
// must come at 1 KiB/s after its first 20 s. wrk has 16 connections for the whole time.
TEST(SlowCallers, AreCutOnTimeByTheThousandAndNobodyElseNotices) {
  const std::size_t count = product_sanitized() ? 200 : 2000;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2 * count + 100) GTEST_SKIP() << "needs 4,100 descriptors";
  MockProcess mock({"--profile", "instant"});
  auto config = basic_config({});
  config["pools"]["p"]["backends"].push_back(backend_config("u1", mock.port(), 64));
  config["routes"]["chat"] = config["routes"]["m"];
  config["limits"]["head_time"] = "3s";
  GatewayProcess gateway(config);
  ASSERT_EQ(::setenv("HEADGATE_KEY", "GW1", 1), 0);
  ChildProcess wrk(
      {"-c", "cd " HEADGATE_SOURCE_DIR "/loadtest/wrk && exec wrk -t 1 -c 16 -d 22s --timeout 5s -s unary_1k.lua "
             "http://127.0.0.1:" +
                 std::to_string(gateway.port())},
      {}, "/bin/sh");
  MachineLag lag;
  std::vector<Trickle> all(2 * count);
  const std::string head = "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer GW1\r\n";
  for (std::size_t n = 0; n < all.size(); ++n) {
    all[n].body = n % 2 == 1;
    all[n].socket = connect_to_loopback(gateway.port());
    all[n].begun = now();
    const std::string begin =
        all[n].body ? head + "Content-Length: 100000\r\n\r\n{\"model\":\"m\"," : head + "X-Slow: ";
    ASSERT_TRUE(send_all(all[n].socket, begin, now() + 5s));
  }
  trickle_all(all, now() + scaled(40s));
  Nanos latest_head{0}, latest_body{0};
  for (const Trickle& one : all) {
    const Nanos took = one.ended - one.begun;
    ASSERT_NE(one.ended, never);
    EXPECT_EQ(one.said.substr(0, 12), "HTTP/1.1 408") << one.said;
    EXPECT_GE(to_ms(took), one.body ? 19990 : 2990);
    Nanos& latest = one.body ? latest_body : latest_head;
    latest = std::max(latest, took);
  }
  std::cout << "heads cut after " << to_ms(latest_head) << " ms at most, bodies after " << to_ms(latest_body)
            << " ms\n";
  EXPECT_LE(to_ms(latest_head), to_ms(3s + scaled(1s) + lag.slack()));
  EXPECT_LE(to_ms(latest_body), to_ms(20s + scaled(1s) + lag.slack()));
  EXPECT_EQ(wrk.exit_code(scaled(30s)), 0);
  const std::string result = wrk.output();
  const std::size_t at = result.find("RESULT ");
  ASSERT_NE(at, std::string::npos) << result;
  std::istringstream fields(result.substr(at + 7));
  std::uint64_t requests = 0, duration = 0, status = 0, ends = 0, sockets = 0;
  fields >> requests >> duration >> status >> ends >> sockets;
  std::cout << requests << " requests of wrk, " << status + ends + sockets << " failed\n";
  EXPECT_GT(requests, 1000u);
  EXPECT_EQ(status + ends + sockets, 0u) << result;
}

}  // namespace
}  // namespace headgate::support
