#include "backends/engine/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policies/base/random.hpp"

namespace headgate::engine {
namespace {

using namespace std::chrono_literals;

// Round figures: 1 ms per prompt token; a step takes 10 ms plus 1 ms per decoding request.
Profile round_figures(std::uint32_t slots, std::uint32_t queue_max) {
  return {.name = "test",
          .prefill_rate = 1000,
          .step_fixed = 10ms,
          .step_per_running = 1ms,
          .slots = slots,
          .queue_max = queue_max};
}

constexpr Time at(Nanos offset) { return Time{} + offset; }

struct Host {
  explicit Host(const Profile& profile) : engine(profile) {}

  void submit(Nanos now, std::uint32_t prompt, std::uint32_t output) {
    run(now);
    keys.push_back(engine.submit(at(now), {prompt, output}));
  }

  void cancel(Nanos now, std::size_t request) {
    run(now);
    engine.cancel(at(now), keys[request]);
  }

  void run(Nanos until) { engine.advance(at(until), events); }

  // "12 p0" prefill done, "23 t0.0" first token, "45 f0" finished; times in ms.
  std::vector<std::string> log() const {
    std::vector<std::string> out;
    for (const EngineEvent& event : events) {
      const std::size_t n = static_cast<std::size_t>(std::find(keys.begin(), keys.end(), event.key) - keys.begin());
      std::string line = std::to_string(event.at.time_since_epoch() / 1ms) + " ";
      if (event.what == EngineEvent::What::prefill_done) line += "p" + std::to_string(n);
      if (event.what == EngineEvent::What::token) line += "t" + std::to_string(n) + "." + std::to_string(event.index);
      if (event.what == EngineEvent::What::finished) line += "f" + std::to_string(n);
      out.push_back(line);
    }
    return out;
  }

  Engine engine;
  std::vector<RequestKey> keys;
  std::vector<EngineEvent> events;
};

using Log = std::vector<std::string>;

TEST(Engine, OneRequestPrefillsThenGetsOneTokenPerStep) {
  Host host(round_figures(4, 4));
  host.submit(0ms, 20, 3);
  EXPECT_EQ(host.engine.next(), at(20ms));
  host.run(19ms);
  EXPECT_TRUE(host.events.empty());
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"20 p0", "31 t0.0", "42 t0.1", "53 t0.2", "53 f0"}));
  EXPECT_EQ(host.engine.next(), never);
  EXPECT_EQ(host.engine.running(), 0u);
}

TEST(Engine, ARequestJoinsTheBatchAtTheNextStepAndMakesItSlower) {
  Host host(round_figures(4, 4));
  host.submit(0ms, 20, 4);
  host.submit(0ms, 15, 2);  // its prefill starts at 20 and ends at 35, within the step 31..42
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"20 p0", "31 t0.0", "35 p1", "42 t0.1", "54 t0.2", "54 t1.0", "66 t0.3", "66 f0",
                             "66 t1.1", "66 f1"}));
}

TEST(Engine, PrefillEndingWithAStepJoinsTheNextOne) {
  Host host(round_figures(4, 4));
  host.submit(0ms, 20, 2);
  host.submit(0ms, 11, 1);  // prefill 20..31, the very end of the first step
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"20 p0", "31 p1", "31 t0.0", "43 t0.1", "43 f0", "43 t1.0", "43 f1"}));
}

TEST(Engine, PromptsWithoutPrefillTimeShareTheFirstStep) {
  Profile profile = round_figures(4, 4);
  profile.prefill_rate = 0;
  Host host(profile);
  host.keys = {host.engine.submit(at(0ms), {20, 1}), host.engine.submit(at(0ms), {20, 1})};
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"0 p0", "0 p1", "12 t0.0", "12 f0", "12 t1.0", "12 f1"}));
}

TEST(Engine, WaitingRequestsTakeFreedSlotsInOrderOfArrival) {
  Host host(round_figures(1, 4));
  for (int i = 0; i < 3; ++i) host.submit(0ms, 5, 1);
  EXPECT_EQ(host.engine.running(), 1u);
  EXPECT_EQ(host.engine.waiting(), 2u);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"5 p0", "16 t0.0", "16 f0", "21 p1", "32 t1.0", "32 f1", "37 p2", "48 t2.0", "48 f2"}));
}

TEST(Engine, AFullQueueTurnsRequestsAway) {
  Host host(round_figures(1, 2));
  for (int i = 0; i < 4; ++i) host.submit(0ms, 5, 1);
  EXPECT_EQ(host.keys[3], RequestKey::none);
  EXPECT_NE(host.keys[2], RequestKey::none);
  host.cancel(1ms, 1);
  host.submit(1ms, 5, 1);
  EXPECT_NE(host.keys.back(), RequestKey::none);
}

TEST(Engine, CancellingADecodingRequestGivesItsSlotToTheFirstWaiting) {
  Host host(round_figures(1, 4));
  host.submit(0ms, 5, 100);
  host.submit(0ms, 5, 1);
  host.cancel(20ms, 0);  // in its second step, 16..27
  EXPECT_EQ(host.engine.running(), 1u);
  EXPECT_EQ(host.engine.waiting(), 0u);
  host.run(1s);  // the step under way ends without it; the next one starts at 27
  EXPECT_EQ(host.log(), (Log{"5 p0", "16 t0.0", "25 p1", "38 t1.0", "38 f1"}));
}

TEST(Engine, CancellingTheRequestBeingPrefilledFreesTheLane) {
  Host host(round_figures(4, 4));
  host.submit(0ms, 100, 1);
  host.submit(0ms, 10, 1);
  host.cancel(30ms, 0);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"40 p1", "51 t1.0", "51 f1"}));
}

TEST(Engine, CancellingAWaitingRequestLeavesTheOthersInOrder) {
  Host host(round_figures(1, 4));
  for (int i = 0; i < 4; ++i) host.submit(0ms, 5, 1);
  host.cancel(1ms, 2);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"5 p0", "16 t0.0", "16 f0", "21 p1", "32 t1.0", "32 f1", "37 p3", "48 t3.0", "48 f3"}));
}

TEST(Engine, AStaleKeyCancelsNothing) {
  Host host(round_figures(1, 0));
  host.submit(0ms, 5, 1);
  host.run(1s);
  host.submit(1s, 5, 1);
  EXPECT_EQ(place_of(host.keys[0]), place_of(host.keys[1]));
  host.cancel(1s, 0);
  host.engine.cancel(at(1s), RequestKey::none);
  EXPECT_EQ(host.engine.running(), 1u);
}

TEST(Engine, WorkWithoutOutputEndsWithItsPrefill) {
  Host host(round_figures(1, 1));
  host.submit(0ms, 5, 0);
  host.submit(0ms, 5, 0);
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"5 p0", "5 f0", "10 p1", "10 f1"}));
}

TEST(Engine, EventsKeepTheTimesTheyWereDueAtWhenTheHostIsLate) {
  Host prompt_host(round_figures(2, 4)), late_host(round_figures(2, 4));
  for (Host* host : {&prompt_host, &late_host}) {
    for (int i = 0; i < 4; ++i) host->submit(0ms, 5, 5);
  }
  for (Nanos now = 0ms; now < 400ms; now += 1ms) prompt_host.run(now);
  late_host.run(400ms);
  EXPECT_EQ(prompt_host.log(), late_host.log());
  EXPECT_EQ(late_host.events.size(), 4u * (1 + 5 + 1));
}

TEST(Engine, ARequestSubmittedByALateHostIsNotPrefilledBeforeItCame) {
  Host host(round_figures(2, 4));
  host.submit(0ms, 5, 1);
  host.keys.push_back(host.engine.submit(at(8ms), {5, 1}));  // the host has not yet looked at what happened at 5
  host.run(1s);
  EXPECT_EQ(host.log(), (Log{"5 p0", "13 p1", "16 t0.0", "16 f0", "27 t1.0", "27 f1"}));
}

// Any history: nothing is lost, made twice or out of order, slots hold, and everything is given back.
TEST(Engine, SeededHistoriesKeepTheBooks) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::uint32_t slots = 1 + below(draw(seed, 0, 0), 8);
    Engine engine(round_figures(slots, 5));
    struct Seen {
      RequestKey key;
      std::uint32_t output, tokens = 0;
      bool prefilled = false, ended = false;
    };
    std::vector<Seen> seen;
    std::vector<EngineEvent> events;
    Nanos now = 0ms;
    const auto check = [&] {
      for (const EngineEvent& event : events) {
        const auto it = std::find_if(seen.begin(), seen.end(), [&](const Seen& s) { return s.key == event.key; });
        ASSERT_NE(it, seen.end());
        ASSERT_FALSE(it->ended);
        if (event.what == EngineEvent::What::prefill_done) it->prefilled = true;
        if (event.what == EngineEvent::What::token) {
          ASSERT_TRUE(it->prefilled);
          ASSERT_EQ(event.index, it->tokens++);
        }
        if (event.what == EngineEvent::What::finished) {
          ASSERT_EQ(it->tokens, it->output);
          it->ended = true;
        }
      }
      events.clear();
      ASSERT_LE(engine.running(), slots);
      ASSERT_LE(engine.waiting(), 5u);
      ASSERT_TRUE(engine.waiting() == 0 || engine.running() == slots);
    };
    for (std::uint64_t i = 1; i <= 300; ++i) {
      now += Nanos{below(draw(seed, i, 1), 40'000'000)};
      engine.advance(at(now), events);
      check();
      if (below(draw(seed, i, 2), 4) == 0 && !seen.empty()) {
        Seen& victim = seen[below(draw(seed, i, 3), static_cast<std::uint32_t>(seen.size()))];
        engine.cancel(at(now), victim.key);
        victim.ended = true;
      } else {
        const Work work{below(draw(seed, i, 4), 50), below(draw(seed, i, 5), 9)};
        const RequestKey key = engine.submit(at(now), work);
        if (key != RequestKey::none) seen.push_back({key, work.output_tokens});
      }
      check();
    }
    engine.advance(at(now + 1h), events);
    check();
    for (const Seen& request : seen) EXPECT_TRUE(request.ended);
    EXPECT_EQ(engine.running(), 0u);
    EXPECT_EQ(engine.next(), never);
  }
}

TEST(Profile, DemoTakesTwentyMillisecondsPerTokenAlone) {
  const Profile* demo = find_profile("demo");
  ASSERT_NE(demo, nullptr);
  EXPECT_EQ(step_time(*demo, 1), 20ms);
  EXPECT_EQ(step_time(*demo, 64), 26300us);
  EXPECT_EQ(prefill_time(*demo, 1600), 100ms);
  EXPECT_TRUE(demo->paced);
}

TEST(Profile, IsFoundByExactNameOnly) {
  ASSERT_NE(find_profile("instant"), nullptr);
  EXPECT_FALSE(find_profile("instant")->paced);
  EXPECT_EQ(find_profile("Demo"), nullptr);
  EXPECT_EQ(find_profile(""), nullptr);
}

}  // namespace
}  // namespace headgate::engine
