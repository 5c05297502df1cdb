// Whole runs against a scripted server on a real socket.
#include "loadtest/load.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "policies/base/tokens.hpp"
#include "support/answers.hpp"

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;
using support::chunk;
using support::Exchange;
using support::ScriptedUpstream;

// Answers as the mock does: as many words as asked for, the prompt counted in words.
void answer_exactly(Exchange& exchange, Nanos per_token, const std::string& backend) {
  const auto body = exchange.arrival().json();
  const auto prompt = count_words(body["messages"][0]["content"].get<std::string>());
  const int tokens = body["max_tokens"];
  const std::string headers = "x-headgate-backend: " + backend + "\r\nx-headgate-attempts: 1\r\n";
  std::vector<std::string> words(static_cast<std::size_t>(tokens), "w ");
  if (!body.value("stream", false)) {
    support::Good good{0ms, static_cast<int>(prompt), tokens, words};
    exchange.write_last(support::plain_reply(200, support::good_body("m", good), headers));
    return;
  }
  exchange.write(support::stream_head(headers) + chunk(support::role_event()));
  for (const std::string& word : words) {
    if (per_token > 0ms && !exchange.wait(per_token)) return;
    if (!exchange.write(chunk(support::content_event(word)))) return;
  }
  exchange.write_last(chunk(support::finish_event()) + chunk(support::usage_event(static_cast<int>(prompt), tokens)) +
                      chunk(support::done_event()) + support::final_chunk());
}

struct LoadRun : testing::Test {
  LoadRun() {
    options.json = file(".json");
    options.slo = "ttft=5s";
    options.rate = 200;
    options.limit = 50;
    options.prompt_tokens = 20;
    options.output_tokens = 5;
  }
  ~LoadRun() override {
    for (const std::string& path : files) std::remove(path.c_str());
  }
  std::string file(const std::string& end) {
    static std::atomic<int> serial{0};
    files.push_back("/tmp/headgate_load_" + std::to_string(getpid()) + "_" + std::to_string(serial++) + end);
    return files.back();
  }
  nlohmann::json run(const ScriptedUpstream& upstream, int wanted_exit = 0) {
    options.target = upstream.url();
    EXPECT_EQ(load(options), wanted_exit);
    std::ifstream in{options.json};
    return nlohmann::json::parse(in, nullptr, false);
  }
  LoadOptions options;
  std::vector<std::string> files;
};

TEST_F(LoadRun, CountsEveryTokenOfEveryStream) {
  ScriptedUpstream upstream([](Exchange& x) { answer_exactly(x, 1ms, "p/a"); });
  const auto summary = run(upstream);
  EXPECT_EQ(summary["requests"], 50);
  EXPECT_EQ(summary["ok"], 50);
  EXPECT_EQ(summary["goodput"]["requests"], 50);
  EXPECT_EQ(summary["backends"]["p/a"]["ok"], 50);
  EXPECT_EQ(summary["ttft_ms"]["count"], 50);
  EXPECT_EQ(summary["tpot_ms"]["count"], 50);
  EXPECT_EQ(upstream.arrival_count(), 50u);
}

TEST_F(LoadRun, MixesUnaryAndStreams) {
  options.stream_share = 0.5;
  ScriptedUpstream upstream([](Exchange& x) { answer_exactly(x, 0ms, "p/a"); });
  const auto summary = run(upstream);
  EXPECT_EQ(summary["ok"], 50);
  EXPECT_GT(summary["ttft_ms"]["count"], 10);
  EXPECT_LT(summary["ttft_ms"]["count"], 40);
}

TEST_F(LoadRun, KeepsConnectionsAndReusesTheLastOneFirst) {
  options.rate = 20;
  options.limit = 20;
  ScriptedUpstream upstream([](Exchange& x) { answer_exactly(x, 0ms, "p/a"); });
  run(upstream);
  EXPECT_LE(upstream.connection_count(), 5u);  // gaps of 50 ms, answers at once: one would do on an idle machine
}

TEST_F(LoadRun, RedialsOnceWhenAKeptConnectionWasClosed) {
  options.rate = 20;
  options.limit = 10;
  ScriptedUpstream upstream([](Exchange& x) {
    answer_exactly(x, 0ms, "p/a");
    x.close();  // without having said so
  });
  EXPECT_EQ(run(upstream)["ok"], 10);
}

TEST_F(LoadRun, MeasuresFromTheIntendedTimeEvenWhenTheServerHoldsItUp) {
  options.connections_max = 1;  // the second request must wait for the first
  options.limit = 2;
  options.rate = 1000;
  options.output_tokens = 1;
  ScriptedUpstream upstream([](Exchange& x) {
    x.wait(300ms);
    answer_exactly(x, 0ms, "p/a");
  });
  const auto summary = run(upstream);
  EXPECT_EQ(summary["ok"], 2);
  EXPECT_GE(summary["ttft_ms"]["max"], 590);
  EXPECT_GE(summary["lag_ms"]["max"], 280);
}

TEST_F(LoadRun, SendsOnTimeWhileAnswersAreOutstanding) {
  options.rate = 500;
  options.limit = 100;
  support::Event all_there;
  ScriptedUpstream upstream([&](Exchange& x) {
    if (x.arrival().number == 99) all_there.set();
    x.wait_for(all_there, 20s);  // nobody is answered before the last one came: a closed loop would hang here
    answer_exactly(x, 0ms, "p/a");
  });
  EXPECT_EQ(run(upstream)["ok"], 100);
  EXPECT_EQ(upstream.open_max(), 100u);
}

TEST_F(LoadRun, TellsRefusalsFailuresCutsAndWrongCountsApart) {
  options.limit = 60;
  options.records = file(".jsonl");
  ScriptedUpstream upstream([](Exchange& x) {
    switch (x.arrival().number % 6) {
      case 0:
        x.write_last(
            support::plain_reply(503, R"({"error":{"code":"queue_full"}})", "x-headgate-refusal: queue_full\r\n"));
        return;
      case 1:
        x.write_last(support::plain_reply(502, R"({"error":{"code":"upstream_failed"}})"));
        return;
      case 2:
        x.write(support::stream_head() + chunk(support::content_event("a ")));
        x.write_last(chunk(support::error_event("upstream_failed")) + support::final_chunk());
        return;
      case 3:
        x.write(support::stream_head() + chunk(support::content_event("a ")));
        x.close();
        return;
      case 4:
        x.write_last(support::stream_head() + chunk(support::content_event("a ")) + chunk(support::finish_event()) +
                     chunk(support::usage_event(20, 1)) + chunk(support::done_event()) + support::final_chunk());
        return;
      default:
        answer_exactly(x, 0ms, "p/a");
    }
  });
  const auto summary = run(upstream);
  EXPECT_EQ(summary["refused_by"]["queue_full"], 10);
  EXPECT_EQ(summary["failed_by"]["502 upstream_failed"], 10);
  EXPECT_EQ(summary["cut"], 10);
  EXPECT_EQ(summary["cut_dirty"], 10);
  EXPECT_EQ(summary["wrong_count"], 10);
  EXPECT_EQ(summary["ok"], 10);
  EXPECT_EQ(summary["goodput"]["requests"], 10);
  std::ifstream lines{options.records};
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) count += static_cast<int>(nlohmann::json::parse(line).contains("outcome"));
  EXPECT_EQ(count, 60);
}

TEST_F(LoadRun, GivesUpOnARequestAtItsTimeout) {
  options.limit = 3;
  options.timeout = "300ms";
  ScriptedUpstream upstream(support::silent());
  const auto summary = run(upstream);
  EXPECT_EQ(summary["failed_by"]["timeout"], 3);
  EXPECT_TRUE(support::eventually(10s, [&] { return upstream.abandoned().size() == 3; }));
}

TEST_F(LoadRun, AFalseConditionMakesTheExitCodeOne) {
  ScriptedUpstream upstream([](Exchange& x) { answer_exactly(x, 0ms, "p/a"); });
  options.expect = {"ok=50"};
  run(upstream, 0);
  options.expect = {"ok=50", "ok<50"};
  run(upstream, 1);
}

TEST_F(LoadRun, ExitsWithOneWhenNothingCouldBeSent) {
  support::RefusedPort refused;
  options.limit = 3;
  options.target = "http://127.0.0.1:" + std::to_string(refused.port());
  EXPECT_EQ(load(options), 1);
}

TEST_F(LoadRun, ExitsWithTwoOnABadOption) {
  const LoadOptions good = options;
  const auto exit_code = [&](void (*change)(LoadOptions&)) {
    LoadOptions bad = good;
    change(bad);
    return load(bad);
  };
  EXPECT_EQ(exit_code([](LoadOptions& o) { o.target = "127.0.0.1"; }), 2);
  EXPECT_EQ(exit_code([](LoadOptions& o) { o.slo = "ttft"; }), 2);
  EXPECT_EQ(exit_code([](LoadOptions& o) { o.timeout = "soon"; }), 2);
  EXPECT_EQ(exit_code([](LoadOptions& o) { o.path = "embeddings"; }), 2);
  EXPECT_EQ(exit_code([](LoadOptions& o) { o.expect = {"ok"}; }), 2);
  EXPECT_EQ(exit_code([](LoadOptions& o) { o.events = {"at=1"}; }), 2);
  EXPECT_EQ(exit_code([](LoadOptions& o) { o.admin = "http://"; }), 2);
  EXPECT_EQ(exit_code([](LoadOptions& o) { o.rate = 0; }), 2);
}

TEST_F(LoadRun, AClassOfAWorkloadAsksForItsModelAndIsJudgedByItsLimits) {
  std::atomic<int> fast{0}, slow{0};
  ScriptedUpstream upstream([&](Exchange& x) {
    const bool is_slow = x.arrival().json()["model"] == "slow";
    ++(is_slow ? slow : fast);
    answer_exactly(x, is_slow ? 20ms : 0ms, "p/a");
  });
  options.rate = 0;
  options.limit = 0;
  options.workload = file(".jsonc");
  std::ofstream{options.workload} << R"({"duration": "300ms", "classes": {
    "a": {"model": "fast", "rate": [{"per_s": 100}], "output_tokens": 3, "stream_share": 0},
    "b": {"model": "slow", "rate": [{"per_s": 50}], "output_tokens": 3, "slo": "tpot=1ms"}}})";
  const auto summary = run(upstream);
  EXPECT_EQ(summary["classes"]["a"]["ok"], fast.load());
  EXPECT_EQ(summary["classes"]["b"]["ok"], slow.load());
  EXPECT_EQ(summary["classes"]["a"]["goodput"]["requests"], fast.load());
  EXPECT_EQ(summary["classes"]["b"]["goodput"]["requests"], 0);
  EXPECT_EQ(summary["classes"]["b"]["itl_ms"]["count"], 2 * slow.load());
  EXPECT_GT(slow.load(), 0);
}

TEST_F(LoadRun, ABadTraceLineExitsWithTwoAndSendsNothing) {
  ScriptedUpstream upstream([](Exchange& x) { answer_exactly(x, 0ms, "p/a"); });
  options.rate = 0;
  options.trace = file(".csv");
  std::ofstream{options.trace}
      << "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2024-01-01 00:00:00.1,1,1\r\n2024-01-01,1,1\r\n";
  options.target = upstream.url();
  testing::internal::CaptureStderr();
  EXPECT_EQ(load(options), 2);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(options.trace + ":3: TIMESTAMP is \"2024-01-01\""),
            std::string::npos);
  EXPECT_EQ(upstream.arrival_count(), 0u);
}

TEST_F(LoadRun, AFileThatCannotBeWrittenExitsWithTwoAndSendsNothing) {
  ScriptedUpstream upstream([](Exchange& x) { answer_exactly(x, 0ms, "p/a"); });
  options.target = upstream.url();
  for (std::string LoadOptions::*const field : {&LoadOptions::json, &LoadOptions::records}) {
    LoadOptions bad = options;
    bad.*field = "/nonexistent/results";
    testing::internal::CaptureStderr();
    EXPECT_EQ(load(bad), 2);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("/nonexistent/results cannot be written: No such file or directory"), said.npos) << said;
  }
  EXPECT_EQ(upstream.arrival_count(), 0u);
}

TEST_F(LoadRun, AFullDiskIsNamedAndExitsWithOne) {
  ScriptedUpstream upstream([](Exchange& x) { answer_exactly(x, 0ms, "p/a"); });
  options.target = upstream.url();
  options.limit = 3;
  options.records = "/dev/full";
  testing::internal::CaptureStderr();
  EXPECT_EQ(load(options), 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("/dev/full: cannot be written"), std::string::npos);
}

TEST_F(LoadRun, WritesATraceAndPlaysItBack) {
  options.lengths = options.arrivals = "azure-conv";
  options.write_trace = file(".csv");
  ASSERT_EQ(load(options), 0);
  LoadOptions again = options;
  again.write_trace = file(".csv");
  ASSERT_EQ(load(again), 0);
  std::ifstream one{options.write_trace}, two{again.write_trace};
  const std::string first{std::istreambuf_iterator<char>(one), {}}, second{std::istreambuf_iterator<char>(two), {}};
  EXPECT_EQ(first, second);
  EXPECT_GT(first.size(), 1000u);

  ScriptedUpstream upstream([](Exchange& x) { answer_exactly(x, 0ms, "p/a"); });
  options.trace = std::exchange(options.write_trace, {});
  options.rate = 0;
  EXPECT_EQ(run(upstream)["ok"], 50);
}

// The server cuts every stream of p/a when the timeline creates a file, as a gateway does whose backend was killed.
TEST_F(LoadRun, AKillIsExactWhenEveryStreamOfTheBackendWasCut) {
  const std::string mark = file(".killed");
  ScriptedUpstream upstream([&](Exchange& x) {
    const bool doomed = x.arrival().number % 2 == 0;
    if (!doomed) return answer_exactly(x, 5ms, "p/b");
    x.write(support::stream_head("x-headgate-backend: p/a\r\n") + chunk(support::content_event("w ")));
    while (access(mark.c_str(), F_OK) != 0) {
      if (!x.wait(10ms)) return;
    }
    x.write_last(chunk(support::error_event("upstream_failed")) + support::final_chunk());
  });
  options.rate = 50;
  options.limit = 20;
  options.events = {"at=1.0;label=killed p/a;kill=p/a;streams=10;run=touch " + mark, "at=1.0;label=back;run=true"};
  options.verdict = true;
  const auto summary = run(upstream);
  EXPECT_EQ(summary["kills"][0]["sending"], 10);
  EXPECT_EQ(summary["kills"][0]["cut"], 10);
  EXPECT_EQ(summary["kills"][0]["exact"], true);
  EXPECT_EQ(summary["cut_elsewhere"], 0);
  EXPECT_EQ(summary["ok"], 10);
}

TEST_F(LoadRun, TheVerdictFailsWhenAnotherBackendsStreamIsCut) {
  ScriptedUpstream upstream([&](Exchange& x) {
    if (x.arrival().number != 7) return answer_exactly(x, 1ms, "p/b");
    x.write(support::stream_head("x-headgate-backend: p/b\r\n") + chunk(support::content_event("w ")));
    x.write_last(chunk(support::error_event("upstream_failed")) + support::final_chunk());
  });
  options.verdict = true;
  EXPECT_EQ(run(upstream, 1)["cut_elsewhere"], 1);
}

TEST_F(LoadRun, PollsTheAdminListenerAndToleratesItsAbsence) {
  ScriptedUpstream admin(support::always(support::plain_reply(
      200,
      R"({"backends":[{"name":"b1","pool":"small","health":"up","in_flight":1,"max_in_flight":16}],"pools":[]})")));
  ScriptedUpstream upstream([](Exchange& x) { answer_exactly(x, 100ms, "p/a"); });
  options.limit = 5;
  options.live = true;
  options.admin = admin.url();
  EXPECT_EQ(run(upstream)["ok"], 5);
  EXPECT_GE(admin.arrival_count(), 1u);
  EXPECT_EQ(admin.arrivals()[0].target(), "/admin/state");
  support::RefusedPort refused;
  options.admin = "http://127.0.0.1:" + std::to_string(refused.port());
  EXPECT_EQ(run(upstream)["ok"], 5);
}

}  // namespace
}  // namespace headgate::loadtest
