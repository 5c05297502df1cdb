// Probes against real sockets. The Prober belongs to one thread, so the fixture posts to it and reads a shared journal.
#include "gateway/prober.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <mutex>
#include <thread>

#include "support/scripted_upstream.hpp"

namespace headgate::gateway {
namespace {

using namespace std::chrono_literals;
using policies::EndpointId;
using support::eventually;
using support::Exchange;
using support::ScriptedUpstream;

constexpr std::string_view good_answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

config::ProbeTarget target_at(std::uint16_t port, std::uint32_t id = 0) {
  config::ProbeTarget target;
  target.endpoint = EndpointId{id};
  target.host = "127.0.0.1";
  target.port = port;
  target.authority = "127.0.0.1:" + std::to_string(port);
  target.probe.path = "/health";
  target.probe.interval = 20ms;
  target.probe.timeout = support::scaled(2s);
  return target;
}

class Probing : public testing::Test {
 protected:
  struct Result {
    EndpointId id{};
    bool ok = false;
  };

  Probing() : prober_(io_, 7, [this](EndpointId id, bool ok) { report(id, ok); }) {
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Probing() override {
    on_its_thread([this] { prober_.stop(); });
    work_.reset();
    thread_.join();  // nothing of it is left waiting
  }

  void report(EndpointId id, bool ok) {
    const std::lock_guard lock(mutex_);
    results_.push_back({id, ok});
  }
  template <class Call>
  void on_its_thread(Call call) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      call();
      done.set_value();
    });
    done.get_future().wait();
  }
  void probe(std::vector<config::ProbeTarget> targets) {
    on_its_thread([&] { prober_.set_targets(targets); });
  }
  std::size_t count(bool ok, std::uint32_t id = 0) {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(results_.begin(), results_.end(), [&](const Result& result) {
      return result.ok == ok && result.id == EndpointId{id};
    }));
  }
  // Three results in a row say the same, and none says the other.
  void expect_only(bool ok, std::uint32_t id = 0) {
    EXPECT_TRUE(eventually(10s, [&] { return count(ok, id) >= 3; }));
    EXPECT_EQ(count(!ok, id), 0u);
  }

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::mutex mutex_;
  std::vector<Result> results_;
  Prober prober_;
  std::thread thread_;
};

TEST_F(Probing, HitsAServerThatAnswers2xxAndCostsItNoTokens) {
  ScriptedUpstream server([](Exchange& x) { x.write_last("HTTP/1.1 204 No Content\r\n\r\n"); });
  auto target = target_at(server.port());
  target.probe.path = "/ping?deep=1";
  probe({target});
  expect_only(true);
  const auto arrival = server.arrivals().at(0);
  EXPECT_EQ(arrival.method(), "GET");
  EXPECT_EQ(arrival.target(), "/ping?deep=1");
  EXPECT_EQ(arrival.head.get("Host"), server.authority());
  EXPECT_FALSE(arrival.head.has("Authorization"));
  EXPECT_EQ(arrival.body, "");
}

TEST_F(Probing, MissesARefusedConnection) {
  const support::RefusedPort nobody;
  probe({target_at(nobody.port())});
  expect_only(false);
}

TEST_F(Probing, MissesAServerThatIsSilent) {
  ScriptedUpstream server([](Exchange&) {});
  server.set_health([](Exchange& x) { x.wait_until_gone(); });
  auto target = target_at(server.port());
  target.probe.timeout = 30ms;
  probe({target});
  expect_only(false);
}

TEST_F(Probing, MissesAnAnswerThatDoesNotEnd) {
  ScriptedUpstream server([](Exchange&) {});
  server.set_health([](Exchange& x) {
    x.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    x.wait_until_gone();
  });
  auto target = target_at(server.port());
  target.probe.timeout = 30ms;
  probe({target});
  expect_only(false);
}

TEST_F(Probing, TellsHitsFromMissesByTheAnswer) {
  const std::string endless = "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + std::string(200'000, 'x');
  const struct {
    std::string answer;
    bool close, ok;
  } table[] = {
      {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", false, false},
      {"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", false, false},
      {"HTTP/1.1 299 Fine\r\nContent-Length: 0\r\n\r\n", false, true},
      {"HTTP/1.0 200 OK\r\n\r\nuntil close", true, true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false, true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", true, false},
      {"SSH-2.0-OpenSSH\r\n\r\n", true, false},
      {"", true, false},
      {endless, false, true},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n", true, false},
  };
  std::uint32_t id = 0;
  for (const auto& row : table) {
    SCOPED_TRACE(row.answer.substr(0, 40));
    ScriptedUpstream server([](Exchange&) {});
    server.set_health([&row](Exchange& x) {
      x.write(row.answer);
      if (row.close) x.close();
    });
    probe({target_at(server.port(), ++id)});
    expect_only(row.ok, id);
    probe({});
  }
}

TEST_F(Probing, SeesAServerComeBack) {
  std::atomic<bool> well{false};
  ScriptedUpstream server([](Exchange&) {});
  server.set_health(
      [&](Exchange& x) { x.write_last(well ? good_answer : "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"); });
  probe({target_at(server.port())});
  EXPECT_TRUE(eventually(10s, [&] { return count(false) >= 2; }));
  EXPECT_EQ(count(true), 0u);
  well = true;
  EXPECT_TRUE(eventually(10s, [&] { return count(true) >= 2; }));
}

TEST_F(Probing, ResolvesNames) {
  ScriptedUpstream server([](Exchange&) {});
  auto target = target_at(server.port());
  target.host = "localhost";
  probe({target});
  expect_only(true);
}

TEST_F(Probing, WaitsAnIntervalThatVariesByAFifth) {
  ScriptedUpstream server([](Exchange&) {});
  auto target = target_at(server.port());
  target.probe.interval = 100ms;
  probe({target});
  ASSERT_TRUE(eventually(20s, [&] { return server.probes().size() >= 8; }));
  const auto times = server.probes();
  for (std::size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 1], 75ms) << i;  // 80 less the journey
}

TEST_F(Probing, FollowsNewTargetsAndKeepsTheCadenceOfOldOnes) {
  ScriptedUpstream kept([](Exchange&) {}), removed([](Exchange&) {}), added([](Exchange&) {});
  auto steady = target_at(kept.port(), 1);
  steady.probe.interval = 200ms;
  probe({steady, target_at(removed.port(), 2)});
  ASSERT_TRUE(eventually(10s, [&] { return count(true, 1) >= 1 && count(true, 2) >= 1; }));
  // Each call would restart a probe that forgot its cadence: 30 restarts would be 30 probes.
  const std::size_t before = kept.probes().size();
  const Time began = support::now();
  for (int i = 0; i < 30; ++i) probe({target_at(added.port(), 3), steady});
  const std::size_t gone = count(true, 2);
  EXPECT_TRUE(eventually(10s, [&] { return count(true, 3) >= 5; }));
  EXPECT_EQ(count(true, 2), gone) << "no report of a target that was removed";
  const auto most = static_cast<std::size_t>((support::now() - began) / 160ms) + 1;
  EXPECT_LE(kept.probes().size() - before, most);
  EXPECT_TRUE(eventually(10s, [&] { return kept.probes().size() > before; }));
}

TEST_F(Probing, DropsTheProbeOfARemovedTargetAtOnce) {
  ScriptedUpstream server([](Exchange&) {});
  support::Event gone;
  server.set_health([&](Exchange& x) {
    if (x.wait_until_gone()) gone.set();
  });
  auto target = target_at(server.port());
  target.probe.timeout = 60s;
  probe({target});
  ASSERT_TRUE(eventually(10s, [&] { return !server.probes().empty(); }));
  probe({});
  EXPECT_TRUE(gone.wait(10s));
  EXPECT_EQ(count(false) + count(true), 0u);
}

}  // namespace
}  // namespace headgate::gateway
