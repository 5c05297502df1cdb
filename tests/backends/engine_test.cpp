// Schedules worked out by hand; the comments have the sums.
#include "backends/engine/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace headgate::engine {
namespace {

using namespace std::chrono_literals;
using Log = std::vector<std::string>;

// A step takes 10 ms, 1 ms more for each request in it and each prompt token; blocks of 4 tokens.
Profile round_figures() {
  return {.name = "test",
          .step_fixed = 10ms,
          .step_per_running = 1ms,
          .prefill_per_token = 1ms,
          .slots = 4,
          .queue_max = 4,
          .batched_tokens_max = 100,
          .block_tokens = 4,
          .blocks = 100};
}

constexpr Time at(Nanos offset) { return Time{} + offset; }

struct Host {
  explicit Host(const Profile& profile) : engine(profile) {}

  void submit(Nanos now, std::uint32_t prompt, std::uint32_t output, std::vector<TextHash> blocks = {}) {
    run(now);
    keys.push_back(engine.submit(at(now), {prompt, output, std::move(blocks)}));
  }
  void cancel(Nanos now, std::size_t request) {
    run(now);
    engine.cancel(at(now), keys[request]);
  }
  void run(Nanos until) { engine.advance(at(until), events); }

  // "31 p0" prefill done ("p0+8": 8 tokens of it were cached), "31 t0.0" first token, "45 f0" finished; times in ms.
  Log log() const {
    Log out;
    for (const EngineEvent& event : events) {
      const auto n = std::to_string(std::find(keys.begin(), keys.end(), event.key) - keys.begin());
      std::string line = std::to_string(event.at.time_since_epoch() / 1ms) + " ";
      if (event.what == EngineEvent::What::prefill_done)
        line += "p" + n + (event.index > 0 ? "+" + std::to_string(event.index) : "");
      if (event.what == EngineEvent::What::token) line += "t" + n + "." + std::to_string(event.index);
      if (event.what == EngineEvent::What::finished) line += "f" + n;
      out.push_back(line);
    }
    return out;
  }
  void expect_at_rest() const {
    EXPECT_EQ(engine.next(), never);
    EXPECT_EQ(engine.running() + engine.waiting(), 0u);
    EXPECT_EQ(engine.memory().held(), 0u);
  }

  Engine engine;
  std::vector<RequestKey> keys;
  std::vector<EngineEvent> events;
};

// 10 + 1 + 20; then 10 + 1 for each further token.
TEST(Engine, APromptsLastPartBringsTheFirstToken) {
  Host host(round_figures());
  host.submit(0ms, 20, 3);
  EXPECT_EQ(host.engine.next(), at(31ms));
  host.run(30ms);
  EXPECT_TRUE(host.events.empty());
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"31 p0", "31 t0.0", "42 t0.1", "53 t0.2", "53 f0"}));
  host.expect_at_rest();
}

// The second comes in the first's step 0..31 and joins the next: 10 + 2 + 15 = 27, for both.
TEST(Engine, AStepIsSharedByPromptsAndAnswers) {
  Host host(round_figures());
  host.submit(0ms, 20, 4);
  host.submit(5ms, 15, 2);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"31 p0", "31 t0.0", "58 t0.1", "58 p1", "58 t1.0", "70 t0.2", "70 t1.1", "70 f1",
                             "81 t0.3", "81 f0"}));
  host.expect_at_rest();
}

// 8 tokens a step. First 8 of 20: 19 ms. Then 8 and 4 more: 19, and 4 for the second, whose 10 do not fit beside:
// 10 + 2 + 4 + 4 = 20. Then the first decodes (1 of the 8), the second has its other 6: 10 + 2 + 6 = 18.
TEST(Engine, ALongPromptIsPrefilledInParts) {
  Profile profile = round_figures();
  profile.batched_tokens_max = 8;
  Host host(profile);
  host.submit(0ms, 20, 2);
  host.submit(0ms, 10, 1);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"58 p0", "58 t0.0", "76 t0.1", "76 f0", "76 p1", "76 t1.0", "76 f1"}));
  host.expect_at_rest();
}

// 1 ms a resident token: a decode step with 20, then 21 of them.
TEST(Engine, ResidentContextCosts) {
  Profile profile = round_figures();
  profile.step_per_context_token = 1ms;
  Host host(profile);
  host.submit(0ms, 20, 3);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"31 p0", "31 t0.0", "62 t0.1", "94 t0.2", "94 f0"}));
}

// One slot: each waits for the one before; 10 + 1 + 5 for each.
TEST(Engine, WaitingRequestsTakeFreedSlotsInOrderOfArrival) {
  Profile profile = round_figures();
  profile.slots = 1;
  Host host(profile);
  for (int i = 0; i < 3; ++i) host.submit(0ms, 5, 1);
  EXPECT_EQ(host.engine.running(), 1u);
  EXPECT_EQ(host.engine.waiting(), 2u);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"16 p0", "16 t0.0", "16 f0", "32 p1", "32 t1.0", "32 f1", "48 p2", "48 t2.0", "48 f2"}));
  host.expect_at_rest();
}

TEST(Engine, OverheadComesBeforeTheQueue) {
  Profile profile = round_figures();
  profile.overhead = 7ms;
  Host host(profile);
  host.submit(0ms, 5, 1);
  host.submit(3ms, 5, 1);  // at 10, in the step 7..23
  EXPECT_EQ(host.engine.next(), at(7ms));
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"23 p0", "23 t0.0", "23 f0", "39 p1", "39 t1.0", "39 f1"}));
}

// 3 blocks of 4. Two prompts of 4 take one each; the first answer token needs a second block of the older (at 4 + 1),
// which is there; the younger's is not: it goes back with its one token. The older ends with 8 tokens resident, at 18 +
// 12 + 11 + 11 + 11; its last step runs alone. Then the younger's 5 known tokens are prefilled anew: 10 + 1 + 5.
TEST(Engine, WithoutMemoryTheNewestGoesBackAndIsComputedAnew) {
  Profile profile = round_figures();
  profile.blocks = 3;
  Host host(profile);
  host.submit(0ms, 4, 5);
  host.submit(0ms, 4, 3);
  host.run(15ms);
  EXPECT_EQ(host.log(), (Log{"15 p0", "15 t0.0"}));
  host.run(1s);
  // 15: the older grows to 2 blocks, the younger starts in the third: 10 + 2 + 4 = 16.
  // 31: the younger needs a second block and is sent back, with 1 token of 3 said. 10 + 1 a step: 42, 53, 64.
  // 64: 5 known tokens, 10 + 1 + 5 = 16: 80; then 91.
  EXPECT_EQ(host.log(), (Log{"15 p0", "15 t0.0", "31 t0.1", "31 p1", "31 t1.0", "42 t0.2", "53 t0.3", "64 t0.4",
                             "64 f0", "80 t1.1", "91 t1.2", "91 f1"}));
  EXPECT_EQ(host.engine.counts().preemptions, 1u);
  host.expect_at_rest();
}

// The second has the first's two full blocks and computes 12 - 8 = 4; a third that is all cached computes its last
// block.
TEST(Engine, FullBlocksOfTheSameTextAreNotComputedAgain) {
  Host host(round_figures());
  host.submit(0ms, 10, 1, {1, 2, 3});
  host.submit(50ms, 12, 1, {1, 2, 30});
  host.submit(100ms, 12, 1, {1, 2, 30});
  host.run(1s);
  EXPECT_EQ(host.log(),
            (Log{"21 p0", "21 t0.0", "21 f0", "65 p1+8", "65 t1.0", "65 f1", "115 p2+8", "115 t2.0", "115 f2"}));
  EXPECT_EQ(host.engine.counts().prompt_tokens, 34u);
  EXPECT_EQ(host.engine.counts().cached_tokens, 16u);
  host.engine.forget_cache();
  host.submit(200ms, 12, 1, {1, 2, 30});
  host.run(1s);
  EXPECT_EQ(host.log().at(9), "223 p3");
  host.expect_at_rest();
}

// A conversation goes on: the answer's tokens are in the cache too. 6 + 3 tokens are 2 full blocks.
TEST(Engine, AnswersAreCachedToo) {
  Host host(round_figures());
  host.submit(0ms, 6, 3, {1, 2, 3});
  host.submit(100ms, 14, 1, {1, 2, 3, 4});
  host.run(1s);
  EXPECT_EQ(host.log().at(4 + 1), "117 p1+8") << "10 + 1 + 6";
}

TEST(Engine, ACancelledOneLeavesAtTheEndOfItsStep) {
  Host host(round_figures());
  host.submit(0ms, 20, 3);
  host.submit(0ms, 5, 1);
  host.submit(0ms, 5, 1);
  host.cancel(1ms, 0);
  host.cancel(1ms, 1);  // still in the queue
  EXPECT_EQ(host.engine.waiting(), 1u);
  EXPECT_EQ(host.engine.running(), 1u);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"47 p2", "47 t2.0", "47 f2"})) << "31 + 10 + 1 + 5";
  host.cancel(1s, 0);  // a stale key
  host.expect_at_rest();
}

TEST(Engine, TurnsAwayWhatHasNoPlaceOrNeverFits) {
  Profile profile = round_figures();
  profile.slots = 1;
  profile.queue_max = 2;
  Host host(profile);
  for (int i = 0; i < 4; ++i) host.submit(0ms, 5, 1);
  EXPECT_EQ(host.keys[3], RequestKey::none);
  EXPECT_NE(host.keys[2], RequestKey::none);
  host.cancel(1ms, 1);
  host.submit(1ms, 399, 2);  // 401 of 400 tokens
  EXPECT_EQ(host.keys.back(), RequestKey::none);
  host.submit(1ms, 399, 1);
  EXPECT_NE(host.keys.back(), RequestKey::none);
}

TEST(Engine, AnEmbeddingIsAPromptWithoutAnAnswer) {
  Host host(round_figures());
  host.submit(0ms, 20, 0);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"31 p0", "31 f0"}));
  host.expect_at_rest();
}

TEST(Engine, ASlowOneTakesSoManyTimesAsLong) {
  Host host(round_figures());
  host.submit(0ms, 20, 2);
  host.engine.slow_down(5);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"31 p0", "31 t0.0", "86 t0.1", "86 f0"})) << "the step under way is as it was";
}

// A prompt of 9 takes 10 + 1 + 9 ms, a token 11. Frozen from 25 to 125: of the step that ends at 31, 6 ms are left.
// What is submitted meanwhile waits; the 9 of its prompt and the first's token make a step of 10 + 2 + 9 ms.
TEST(Engine, FrozenItTakesUpWhereItStopped) {
  Host host(round_figures());
  host.submit(0ms, 9, 3);
  host.run(25ms);
  host.engine.freeze(at(25ms));
  host.submit(50ms, 9, 1);
  EXPECT_EQ(host.engine.next(), never);
  host.run(125ms);
  host.engine.thaw(at(125ms));
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"20 p0", "20 t0.0", "131 t0.1", "152 t0.2", "152 f0", "152 p1", "152 t1.0", "152 f1"}));
  host.expect_at_rest();
}

TEST(Engine, FrozenWhileIdleItBeginsWithItsThaw) {
  Host host(round_figures());
  host.engine.freeze(at(0ms));
  host.submit(10ms, 9, 1);
  host.run(100ms);
  host.engine.thaw(at(100ms));
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"120 p0", "120 t0.0", "120 f0"}));
}

TEST(Engine, IsAsGoodWhenItsHostIsLate) {
  Host prompt_host(round_figures()), late(round_figures());
  for (Host* host : {&prompt_host, &late}) host->submit(0ms, 20, 5);
  for (Nanos now = 0ms; now < 200ms; now += 1ms) prompt_host.run(now);
  late.run(200ms);
  EXPECT_EQ(prompt_host.log(), late.log());
}

// Any history: everybody ends once or was cancelled, tokens come in order, memory is conserved, the same seed gives the
// same events.
TEST(Engine, ConservesMemoryAndRequestsThroughAnyHistory) {
  const auto play = [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Profile profile = round_figures();
    profile.slots = 1 + static_cast<std::uint32_t>(random() % 6);
    profile.queue_max = static_cast<std::uint32_t>(random() % 10);
    profile.batched_tokens_max = 1 + static_cast<std::uint32_t>(random() % 40);
    profile.blocks = 5 + static_cast<std::uint32_t>(random() % 30);
    profile.overhead = static_cast<std::int64_t>(random() % 3) * 5ms;
    Host host(profile);
    std::map<RequestKey, std::uint32_t> wanted;
    std::map<RequestKey, bool> cancelled;
    Nanos now{0};
    for (int n = 0; n < 200; ++n) {
      now += static_cast<std::int64_t>(random() % 40) * 1ms;
      if (random() % 5 == 0 && !host.keys.empty()) {
        const std::size_t which = random() % host.keys.size();
        host.cancel(now, which);
        cancelled[host.keys[which]] = true;
        continue;
      }
      const auto prompt = static_cast<std::uint32_t>(random() % 40), output = static_cast<std::uint32_t>(random() % 20);
      std::vector<TextHash> blocks;
      const TextHash family = random() % 3;
      for (TextHash block = 0; block < (prompt + output) / 4; ++block)
        blocks.push_back(block < 4 ? family * 100 + block : random());
      host.submit(now, prompt, output, random() % 2 == 0 ? std::move(blocks) : std::vector<TextHash>());
      if (host.keys.back() != RequestKey::none) wanted[host.keys.back()] = output;
      EXPECT_LE(host.engine.running(), profile.slots);
      EXPECT_LE(host.engine.memory().held(), profile.blocks);
      EXPECT_LE(host.engine.batch(), profile.batched_tokens_max);
    }
    host.run(1h);
    host.expect_at_rest();
    std::map<RequestKey, std::uint32_t> tokens;
    std::map<RequestKey, int> ends;
    Time last{};
    for (const EngineEvent& event : host.events) {
      EXPECT_GE(event.at, last);
      last = event.at;
      if (event.what == EngineEvent::What::token) {
        EXPECT_EQ(event.index, tokens[event.key]++);
      }
      if (event.what == EngineEvent::What::finished) {
        EXPECT_EQ(++ends[event.key], 1);
        EXPECT_EQ(tokens[event.key], wanted[event.key]);
      }
    }
    for (const auto& [key, output] : wanted) EXPECT_EQ(ends[key] == 1 || cancelled[key], true) << seed;
    return host.log();
  };
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Log once = play(seed);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    if (seed % 10 == 0) {
      EXPECT_EQ(play(seed), once) << seed;
    }
  }
}

TEST(Profile, DemoTakesTwentyMillisecondsPerTokenAlone) {
  const Profile* demo = find_profile("demo");
  ASSERT_NE(demo, nullptr);
  EXPECT_EQ(demo->step_fixed + demo->step_per_running, 20ms);
}

TEST(Profile, AtTenTimesTheSpeedTakesATenthOfTheTime) {
  const Profile fast = at_speed(*find_profile("llama-3.1-8b-h100"), 10);
  EXPECT_EQ(fast.overhead, 1500us);
  EXPECT_EQ(fast.step_fixed, 770us);
  EXPECT_EQ(fast.step_per_running, 440ns);
  EXPECT_EQ(fast.step_per_context_token, 8ns) << "rounded";
  EXPECT_EQ(fast.prefill_per_token, 3600ns);
  EXPECT_EQ(fast.slots, 256u);
  EXPECT_EQ(at_speed(*find_profile("paced"), 1e9).step_fixed, 1ns) << "a step takes time";
}

TEST(Profile, IsFoundByExactNameOnly) {
  ASSERT_NE(find_profile("instant"), nullptr);
  EXPECT_FALSE(find_profile("instant")->paced);
  EXPECT_EQ(find_profile("Demo"), nullptr);
  EXPECT_EQ(find_profile(""), nullptr);
}

// 8 prompts of one chunk's length, as it was measured: 15,928 prompt tokens a second.
TEST(Profile, Qwen3PrefillsAsMeasured) {
  const Profile& qwen = *find_profile("qwen3-32b-2xh100");
  const double seconds = std::chrono::duration<double>(qwen.prefill_per_token * qwen.batched_tokens_max).count();
  EXPECT_NEAR(qwen.batched_tokens_max / seconds, 15928, 15928 * 0.01);
}

}  // namespace
}  // namespace headgate::engine
