// Stopping the process: case RW-35, and what the exit code says.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "support/answers.hpp"
#include "support/child_process.hpp"
#include "support/gateway_process.hpp"
#include "support/machine_lag.hpp"

namespace headgate::support {
namespace {

// 60 events 100 ms apart: a stream of 6 s.
void six_seconds(Exchange& x) {
  x.write(stream_head());
  const Time start = now();
  for (int n = 1; n <= 60; ++n) {
    x.write(chunk(content_event("w ")));
    if (!x.wait_until(start + n * 100ms)) return;
  }
  x.write(chunk(finish_event() + done_event()));
  x.write_last(final_chunk());
}

void streams_last_others_are_short(Exchange& x) {
  static const Script good = good_answer();
  x.arrival().body.find("\"stream\":true") != std::string::npos ? six_seconds(x) : good(x);
}

// Stage: 20 streams of 6 s on 20 slots, five requests queued behind them, ten idle connections of callers; the stop
// signal at 1 s.
class Drain : public testing::Test {
 protected:
  void start(const char* grace) {
    auto config = basic_config({&upstream_});
    config["pools"]["p"]["backends"][0]["slots"] = 20;
    config["drain"] = grace;
    gateway_.emplace(config);
    for (int n = 0; n < 10; ++n) idle_.emplace_back(gateway_->port());
    for (int n = 0; n < 5; ++n)  // half of them have been used
      ASSERT_EQ(idle_[static_cast<std::size_t>(n)].ask(chat_request(chat_body(false))).status, 200);
    const Time began = now();
    for (int n = 0; n < 20; ++n) streams_.emplace_back(gateway_->port()).send(chat_request(chat_body(true)));
    ASSERT_TRUE(upstream_.await_arrivals(25));
    for (int n = 0; n < 5; ++n) queued_.emplace_back(gateway_->port()).send(chat_request(chat_body(false)));
    ASSERT_TRUE(eventually(10s, [&] { return gateway_->metric("headgate_queued", {{"pool", "p"}}) == 5; }));
    ASSERT_EQ(gateway_->admin_get("/readyz").status, 200);
    std::this_thread::sleep_until(began + 1s);  // the moment is the stage
    signal_at_ = now();
    gateway_->signal(SIGTERM);
  }
  void expect_not_ready_soon() {
    EXPECT_TRUE(eventually(scaled(2s), [&] { return gateway_->admin_get("/readyz").status == 503; }));
    EXPECT_LE(to_ms(now() - signal_at_), to_ms(scaled(200ms) + lag_.slack()));
  }

  ScriptedUpstream upstream_{streams_last_others_are_short};
  std::optional<GatewayProcess> gateway_;
  std::vector<RawClient> idle_, streams_, queued_;
  Time signal_at_{};
  MachineLag lag_;
};

// (a) Grace 15 s. Readiness is 503 within 200 ms; 20 of 20 streams end with [DONE]; the queued five are served or get a
// 503 plain error; the idle connections are closed; the exit code is 0, within 1 s of the last reply.
TEST_F(Drain, RW35a_RunningStreamsEndInOrder) {
  ASSERT_NO_FATAL_FAILURE(start("15s"));
  expect_not_ready_soon();
  for (RawClient& client : idle_) EXPECT_TRUE(client.closed_by_peer(scaled(1s)));
  for (RawClient& client : streams_) {
    const Reply reply = client.read_reply(40s);
    EXPECT_TRUE(reply.complete);
    EXPECT_EQ(last_data_of(reply.body), "[DONE]") << reply.body;
    EXPECT_EQ(content_of(reply.body).size(), 120u);
  }
  for (RawClient& client : queued_) {
    const Reply reply = client.read_reply(40s);
    if (reply.status == 200) continue;
    EXPECT_EQ(reply.status, 503) << reply.raw;
    EXPECT_EQ(plain_error_fault(reply), "");
  }
  const Time last_reply = now();
  EXPECT_EQ(gateway_->exit_code(scaled(2s)), 0);
  EXPECT_LE(to_ms(now() - last_reply), to_ms(scaled(1s) + lag_.slack()));
}

// (b) Grace 2 s. By 3.3 s after the start of the streams each has got exactly one error event and its end, and the
// process has gone, with 3 for "streams cut". The queued five get a 503 plain error.
TEST_F(Drain, RW35b_WhatIsLeftAfterTheGraceIsCutWithAWord) {
  ASSERT_NO_FATAL_FAILURE(start("2s"));
  expect_not_ready_soon();
  EXPECT_EQ(gateway_->exit_code(scaled(5s)), 3);
  const Nanos gone_after = now() - signal_at_;
  EXPECT_GE(to_ms(gone_after), 1900);
  EXPECT_LE(to_ms(gone_after), to_ms(2s + scaled(300ms) + lag_.slack()));
  for (RawClient& client : streams_) {
    const Reply reply = client.read_reply(10s);
    std::size_t errors = 0;
    for (const std::string& payload : data_of(reply.body)) errors += payload.find("\"error\"") != std::string::npos;
    EXPECT_EQ(errors, 1u) << reply.body;
    EXPECT_TRUE(reply.complete) << "the end of the answer is missing";
    EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
    EXPECT_GE(content_of(reply.body).size(), 40u);
  }
  for (RawClient& client : queued_) {
    const Reply reply = client.read_reply(10s);
    EXPECT_EQ(reply.status, 503) << reply.raw;
    EXPECT_EQ(plain_error_fault(reply), "");
  }
}

// A second signal, 0.3 s after the first, ends the process at once though streams run.
TEST_F(Drain, RW35_ASecondSignalEndsItAtOnce) {
  ASSERT_NO_FATAL_FAILURE(start("15s"));
  std::this_thread::sleep_until(signal_at_ + 300ms);  // a process under drain is the stage
  ASSERT_EQ(gateway_->exit_code(0s), std::nullopt);
  const Time second = now();
  gateway_->signal(SIGTERM);
  EXPECT_EQ(gateway_->exit_code(scaled(2s)), 3);
  EXPECT_LE(to_ms(now() - second), to_ms(scaled(200ms) + lag_.slack()));
}

TEST(ExitCode, ZeroWhenNothingWasRunning) {
  ScriptedUpstream upstream(good_answer());
  GatewayProcess gateway(basic_config({&upstream}));
  EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false))).status, 200);
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.exit_code(scaled(2s)), 0);
}

TEST(ExitCode, OneWhenAPortIsTaken) {
  ScriptedUpstream upstream(good_answer());
  for (const char* listener : {"data", "admin"}) {
    auto config = basic_config({&upstream});
    config["listen"] = {{"data", "127.0.0.1:0"}, {"admin", "127.0.0.1:0"}};
    config["listen"][listener] = upstream.authority();
    const TextFile file(config.dump());
    ChildProcess serve({"serve", "--config", file.path()});
    EXPECT_EQ(serve.exit_code(20s), 1) << listener << serve.output();
    EXPECT_NE(serve.output().find(upstream.authority()), std::string::npos) << serve.output();
  }
}

TEST(ExitCode, TwoForAConfigurationThatIsWrongOrMissing) {
  ScriptedUpstream upstream(good_answer());
  auto config = basic_config({&upstream});
  config["pools"]["p"]["backends"][0]["slots"] = 0;
  const TextFile file(config.dump());
  ChildProcess wrong({"serve", "--config", file.path()});
  EXPECT_EQ(wrong.exit_code(20s), 2) << wrong.output();
  EXPECT_NE(wrong.output().find("backends[0].slots"), std::string::npos) << wrong.output();
  ChildProcess missing({"serve", "--config", file.path() + "-not-there"});
  EXPECT_EQ(missing.exit_code(20s), 2) << missing.output();
  ChildProcess usage({"serve", "--no-such-flag"});
  EXPECT_EQ(usage.exit_code(20s), 2) << usage.output();
}

}  // namespace
}  // namespace headgate::support
