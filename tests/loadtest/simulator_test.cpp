#include "loadtest/sim/simulator.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "fleet.hpp"
#include "loadtest/lengths.hpp"
#include "loadtest/report.hpp"
#include "loadtest/sim/simulate.hpp"

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

std::vector<Planned> azure_plan(std::uint64_t seed, double rate, std::uint32_t count) {
  std::vector<Planned> plan;
  for (std::uint32_t n = 0; n < count; ++n) {
    const Lengths lengths = azure_conv_lengths(seed, n);
    plan.push_back({Nanos(static_cast<std::int64_t>(n / rate * 1e9)), lengths.input, lengths.output, n % 4 != 0});
  }
  return plan;
}

// The network there, a step of 19.9 + 0.1 ms and 20 us for each of 100 prompt tokens, and back; then 20 ms a token.
TEST(Simulator, TakesTheTimeThatEngineAndNetworkTake) {
  Fleet fleet(1, 4);
  const RunResult result = simulate(fleet.settings, {{0ms, 100, 3, true}, {1s, 100, 2, false}});
  const Record& stream = result.records[0];
  EXPECT_EQ(stream.outcome, Outcome::ok);
  EXPECT_EQ(stream.ttft(), 22500us);
  EXPECT_EQ(stream.tpot(), 20ms);
  EXPECT_EQ(stream.e2e(), 62500us);
  EXPECT_EQ(stream.attempts, 1u);
  EXPECT_EQ(result.names[stream.backend], "p/b1");
  const Record& unary = result.records[1];
  EXPECT_EQ(unary.intended, 1s);
  EXPECT_EQ(unary.ttft(), std::nullopt);
  EXPECT_EQ(unary.e2e(), 42500us);
}

TEST(Simulator, CountsEveryGapBetweenTokens) {
  Fleet fleet(1, 4);
  const RunResult result =
      simulate(fleet.settings, {{0ms, 100, 30, true}, {10s, 100, 20, true}, {20s, 100, 20, false}});
  const Histogram& itl = result.tally.itl(0);
  EXPECT_EQ(itl.count(), 29u + 19u);
  EXPECT_NEAR(itl.quantile_us(0.005), 20'000, 400);
  EXPECT_EQ(itl.max_us(), 20'000);
}

// Two classes: their routes, limits and counts are their own; a token costs what its pool says.
TEST(Simulator, TellsClassesQueueWaitAttemptsAndCost) {
  Fleet fleet(1, 1);
  std::string problem;
  fleet.settings.classes = {{.name = "batch", .model = "chat"},
                            {.name = "chat", .model = "chat", .slo = *parse_slo("ttft=30ms", problem)}};
  auto catalog = std::make_shared<config::Catalog>(*fleet.settings.catalog);
  for (auto& target : catalog->targets) {
    if (target == nullptr) continue;
    auto priced = std::make_shared<config::Target>(*target);
    priced->price = {.input = 1000, .output = 10'000};
    target = priced;
  }
  fleet.settings.catalog = catalog;
  std::vector<Planned> plan{{0ms, 100, 3, true}, {1ms, 100, 3, true}, {1s, 100, 3, true}};
  plan[1].traffic_class = plan[2].traffic_class = 1;
  const Summary summary = summarize(simulate(fleet.settings, plan));
  EXPECT_EQ(summary["goodput"]["slo"], "the limits of each class");
  EXPECT_EQ(summary["goodput"]["requests"], 2);
  EXPECT_EQ(summary["attempts_per_request"], 1.0);
  EXPECT_EQ(summary["queue_ms"]["max"], 61.5);  // sent 1 ms after the first, which took 62.5 ms
  EXPECT_EQ(summary["classes"]["batch"]["requests"], 1);
  EXPECT_EQ(summary["classes"]["batch"]["queue_ms"]["max"], 0.0);
  EXPECT_EQ(summary["classes"]["chat"]["requests"], 2);
  EXPECT_EQ(summary["classes"]["chat"]["goodput"]["requests"], 1);
  EXPECT_EQ(summary["classes"]["chat"]["itl_ms"]["count"], 4);
  EXPECT_EQ(summary["cost_usd"], 0.39);  // 300 and 9 tokens
  EXPECT_NE(table_of(summary).find("\nchat         chat                 2         0    50.0 %"), std::string::npos);
}

// Its first token is made in time and arrives too late: who asked has seen nothing.
TEST(Simulator, ATokenOnItsWayHasNotBeenSeen) {
  Fleet fleet(1, 4);
  fleet.settings.network = 10ms;
  auto catalog = std::make_shared<config::Catalog>(*fleet.settings.catalog);
  for (policies::RoutePlan& route : catalog->plan.routes) {
    route.timeouts.first_token = 35ms;  // made after 10 + 22 ms, there after 42 ms
    route.retry.attempts_max = 1;
  }
  fleet.settings.catalog = catalog;
  const RunResult result = simulate(fleet.settings, {{0ms, 100, 30, true}});
  EXPECT_EQ(result.records[0].outcome, Outcome::failed_before_first_token);
  EXPECT_EQ(result.records[0].ttft(), std::nullopt);
  EXPECT_EQ(result.records[0].content_events, 0u);
}

// One slot in the pool: the second waits for the first, and the third finds the queue full.
TEST(Simulator, AsksTheDispatcherWhoMayRun) {
  Fleet fleet(1, 1, 1);
  const RunResult result = simulate(fleet.settings, {{0ms, 100, 3, true}, {1ms, 100, 3, true}, {2ms, 100, 3, true}});
  EXPECT_EQ(result.records[0].outcome, Outcome::ok);
  EXPECT_EQ(result.records[1].outcome, Outcome::ok);
  EXPECT_EQ(result.records[1].ttft(), 62500us - 1ms + 22500us);
  EXPECT_EQ(result.records[2].outcome, Outcome::refused);
  EXPECT_EQ(result.names[result.records[2].reason], "queue_full");
  EXPECT_EQ(result.records[2].ended, 2ms);
}

// Far too much for two servers: everybody still ends once, in one of the ways there are.
TEST(Simulator, EndsEveryRequestOnceUnderOverload) {
  Fleet fleet(2, 32, 20);
  const auto plan = azure_plan(7, 40, 3000);
  const RunResult result = simulate(fleet.settings, plan);
  std::uint64_t ok = 0, refused = 0;
  for (const Record& record : result.records) {
    ok += record.outcome == Outcome::ok;
    refused += record.outcome == Outcome::refused;
    if (record.outcome == Outcome::ok) {
      const Planned& asked = plan[static_cast<std::size_t>(&record - result.records.data())];
      EXPECT_EQ(record.content_events, asked.output);
    }
  }
  EXPECT_EQ(ok + refused, plan.size());
  EXPECT_GT(ok, 500u);
  EXPECT_GT(refused, 500u);
  EXPECT_EQ(result.tally.whole().ended, plan.size());
}

TEST(Simulator, SameSettingsSameResult) {
  const auto plan = azure_plan(3, 20, 500);
  std::vector<RunResult> results;
  for (int n = 0; n < 2; ++n) results.push_back(simulate(Fleet(3, 8).settings, plan));
  for (std::size_t n = 0; n < plan.size(); ++n) {
    EXPECT_EQ(results[0].records[n].ended, results[1].records[n].ended);
    EXPECT_EQ(results[0].records[n].first, results[1].records[n].first);
    EXPECT_EQ(results[0].records[n].backend, results[1].records[n].backend);
  }
}

// 1,024 prompt tokens take 19.9 + 0.1 + 20.48 ms. The second prompt is the same, so that all but its last block of 16
// are there; the third shares only what its first hash id stands for.
TEST(Simulator, FindsInTheCacheWhatHashIdsSayIsAlike) {
  const std::uint32_t alike[] = {1, 2}, half[] = {1, 3};
  const std::vector<Planned> plan{{.at = 0s, .input = 1024, .output = 1, .prefix = alike},
                                  {.at = 1s, .input = 1024, .output = 1, .prefix = alike},
                                  {.at = 2s, .input = 1024, .output = 1, .prefix = half}};
  Fleet fleet(1, 4);
  const RunResult result = simulate(fleet.settings, plan);
  const auto seen_after = [](int prompt_tokens) { return 500us + 20ms + prompt_tokens * 20us; };
  EXPECT_EQ(result.records[0].ttft(), seen_after(1024));
  EXPECT_EQ(result.records[1].ttft(), seen_after(1024 - 1008));
  EXPECT_EQ(result.records[2].ttft(), seen_after(512));
  ASSERT_EQ(result.servers.size(), 1u);
  EXPECT_EQ(result.servers[0].name, "p/b1");
  EXPECT_EQ(result.servers[0].prompt_tokens, 3072u);
  EXPECT_EQ(result.servers[0].cached_tokens, 1008u + 512u);
  EXPECT_EQ(result.servers[0].output_tokens, 3u);
}

TEST(Simulator, TellsHowServersWereUsed) {
  Fleet fleet(2, 8);
  const RunResult result = simulate(fleet.settings, azure_plan(1, 20, 2000));
  ASSERT_EQ(result.servers.size(), 2u);
  std::uint64_t tokens = 0;
  for (const Record& record : result.records) tokens += record.outcome == Outcome::ok ? record.reported_output : 0;
  EXPECT_GE(result.servers[0].output_tokens + result.servers[1].output_tokens, tokens);
  for (const ServerUse& server : result.servers) {
    EXPECT_GT(server.busy, 0.9) << "it is too much for them";
    EXPECT_LE(server.busy, 1.0);
    EXPECT_GT(server.batch, 4);
    EXPECT_LE(server.batch, 8);
    EXPECT_GT(server.kv_held, 0);
    EXPECT_LE(server.kv_held, 1);
  }
}

TEST(Simulator, APromptOverTheServersMemoryIsItsCallersFault) {
  Fleet fleet(1, 4);
  const RunResult result = simulate(fleet.settings, {{0s, 900'000, 3, true}, {1s, 100, 3, true}});
  EXPECT_EQ(result.records[0].outcome, Outcome::failed_before_first_token);
  EXPECT_EQ(result.records[0].status, 400);
  EXPECT_EQ(result.records[0].attempts, 1u);
  EXPECT_EQ(result.records[1].outcome, Outcome::ok);
}

// The demo file has the pools small and large; requests go to small first.
TEST(Simulate, PoolsWithoutAProfileOfTheirOwnAreDemo) {
  const std::string path = "/tmp/headgate_simulate_" + std::to_string(::getpid()) + ".profiles.json";
  SimulateOptions options;
  options.config = HEADGATE_SOURCE_DIR "/config/examples/demo.jsonc";
  options.load.rate = 1;
  options.load.limit = 20;
  options.load.json = path;
  options.profiles = {"large=llama-70b-8xh100"};
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(simulate(options), 0);
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  std::ifstream in(path);
  const auto summary = nlohmann::json::parse(in);
  std::remove(path.c_str());
  EXPECT_NEAR(summary["tpot_ms"]["p50"].get<double>(), 20, 0.2);
  EXPECT_GT(summary["servers"]["small/b1"]["busy"].get<double>(), 0.1);
  EXPECT_FALSE(summary.contains("lag_ms")) << "nothing can be late in virtual time";
  EXPECT_FALSE(summary.contains("cut_elsewhere"));
}

TEST(Simulate, LeavesEarlierResultsAloneWhenSomethingIsWrong) {
  const std::string path = "/tmp/headgate_simulate_" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << "kept";
  SimulateOptions options;
  options.config = HEADGATE_SOURCE_DIR "/config/examples/demo.jsonc";
  options.load.rate = 1;
  options.load.limit = 1;
  options.load.json = path;
  options.compare = "/nonexistent.jsonc";
  testing::internal::CaptureStderr();
  EXPECT_EQ(simulate(options), 2);
  testing::internal::GetCapturedStderr();
  std::string text;
  std::getline(std::ifstream(path) >> std::ws, text);
  std::remove(path.c_str());
  EXPECT_EQ(text, "kept");
}

// What is wrong is named beside what there is, and nothing is played.
TEST(Simulate, NamesWhatItDoesNotKnow) {
  const auto says = [](SimulateOptions options) {
    options.config = HEADGATE_SOURCE_DIR "/config/examples/demo.jsonc";
    options.load.rate = 1;
    options.load.limit = 1;
    testing::internal::CaptureStderr();
    EXPECT_EQ(simulate(options), 2);
    return testing::internal::GetCapturedStderr();
  };
  SimulateOptions model, profile, pool, unpaced;
  model.load.model = "chatt";
  EXPECT_EQ(says(model), "headgate simulate: model \"chatt\" is unknown; did you mean \"chat\"?\n");
  profile.profiles = {"demoo"};
  EXPECT_EQ(says(profile),
            "headgate simulate: profile \"demoo\" is unknown, and as a file it cannot be opened: No such file or "
            "directory; did you mean \"demo\"?\n");
  pool.profiles = {"demo", "smal=demo"};
  EXPECT_EQ(says(pool), "headgate simulate: pool \"smal\" is unknown; did you mean \"small\"?\n");
  SimulateOptions condition;
  condition.load.expect = {"cut="};
  EXPECT_EQ(says(condition), "headgate simulate: expect is \"cut=\"; a condition such as cut>=5 is wanted\n");
  unpaced.profiles = {"instant"};
  EXPECT_NE(says(unpaced).find("profile \"instant\" is unknown; there are: paced demo"), std::string::npos);
}

}  // namespace
}  // namespace headgate::loadtest
