#include "loadtest/sim/replay.hpp"

#include <gtest/gtest.h>

#include "config/event_codec.hpp"
#include "loadtest/event_trace.hpp"
#include "policies/base/random.hpp"

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

policies::Plan small_plan(std::uint32_t limit) {
  policies::Plan plan;
  policies::PoolPlan pool;
  for (std::uint32_t e = 0; e < 2; ++e) {
    plan.endpoints.push_back({.id = policies::EndpointId{e}, .max_in_flight = limit, .health = {}});
    pool.backends.push_back({policies::BackendId{e}, policies::EndpointId{e}, 1});
  }
  pool.queue.requests_max = 2;
  plan.pools.push_back(pool);
  policies::RoutePlan route;
  route.pools = {policies::PoolId{0}};
  plan.routes.push_back(route);
  return plan;
}

// A Dispatcher whose calls and orders are written down as a serving process does it.
class Recorded {
 public:
  Recorded() { add(config::Planned{small_plan(2)}); }

  template <class E>
  void add(E event) {
    std::string record(config::write_event(event, nullptr), '\0');
    config::write_event(event, record.data());
    text_ += record;
    last_ = record.size();
  }
  void arrive(bool stream) {
    const policies::Arrival arrival{.body_bytes = 400, .prompt_tokens = 100, .stream = stream, .received = now_};
    add(config::TurnedAway{now_, arrival, dispatcher_.turn_away(now_, arrival, orders_)});
    take();
    const policies::RequestId id = dispatcher_.arrive(now_, arrival, orders_);
    add(config::Arrived{now_, arrival, id});
    take();
  }
  void end_oldest(policies::End end) {
    if (running_.empty()) return;
    const policies::AttemptId attempt = running_.front();
    running_.erase(running_.begin());
    const policies::Outcome outcome{
        .end = end, .input_tokens = 90, .output_tokens = end == policies::End::ok ? 30u : 0u};
    add(config::Ended{now_, attempt, outcome});
    dispatcher_.ended(now_, attempt, outcome, orders_);
    take();
  }
  void replan(std::uint32_t limit) {
    add(config::Replanned{now_, small_plan(limit)});
    dispatcher_.replan(now_, small_plan(limit), orders_);
    take();
  }
  void tick() {
    add(config::Ticked{now_});
    dispatcher_.tick(now_, orders_);
    take();
  }
  void pass(Nanos time) { now_ += time; }
  void close() { add(config::Closed{}); }
  // As at a file that has its size: what log() gives from here is the next one. Returns the one before.
  std::string go_on_in_next() {
    add(config::Closed{true});
    std::string before = log();
    text_.clear();
    const std::string image = dispatcher_.image();
    add(config::Continued{image, config::image_digest(image)});
    return before;
  }
  void forget_last() { text_.resize(text_.size() - last_); }

  std::string log() const {
    return std::string(config::event_log_begin) + "\"build\":\"test\",\"config\":{}}\n" + text_;
  }

 private:
  void take() {
    for (const policies::Order& order : orders_) {
      add(config::Ordered{order});
      if (const auto* start = std::get_if<policies::Start>(&order.what)) running_.push_back(start->attempt);
    }
    orders_.clear();
  }

  policies::Dispatcher dispatcher_{small_plan(2)};
  policies::Orders orders_;
  std::vector<policies::AttemptId> running_;
  Time now_ = Time{} + 1h;
  std::string text_;
  std::size_t last_ = 0;
};

void work(Recorded& recorded, std::uint64_t seed = 1) {
  for (std::uint64_t n = 0; n < 400; ++n) {
    const std::uint64_t dice = draw(seed, n, 0);
    recorded.pass(Nanos(below(dice, 20'000'000)));
    switch (dice % 8) {
      case 0:
      case 1:
      case 2:
      case 3:
        recorded.arrive(dice % 3 == 0);
        break;
      case 4:
      case 5:
        recorded.end_oldest(policies::End::ok);
        break;
      case 6:
        recorded.end_oldest(dice % 3 == 0 ? policies::End::connect : policies::End::truncated);
        break;
      default:
        n % 100 == 99 ? recorded.replan(1 + below(dice, 3)) : recorded.tick();
    }
  }
}

TEST(Replay, GivesEveryOrderOfALog) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Recorded recorded;
    work(recorded, seed);
    recorded.close();
    const Replayed played = replay(recorded.log());
    EXPECT_EQ(played.difference, "") << "seed " << seed;
    EXPECT_EQ(played.problem, "");
    EXPECT_EQ(played.note, "");
    EXPECT_EQ(played.build, "test");
    EXPECT_GT(played.calls, 400u);
    EXPECT_GT(played.orders, 100u);
  }
}

TEST(Replay, BeginsInTheMidstWhereAFileGoesOn) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Recorded recorded;
    work(recorded, seed);
    const Replayed first = replay(recorded.go_on_in_next());
    EXPECT_EQ(first.difference + first.problem, "");
    EXPECT_EQ(first.note, "the log goes on in another file");
    work(recorded, seed + 100);
    recorded.close();
    const Replayed second = replay(recorded.log());
    EXPECT_EQ(second.difference + second.problem + second.note, "") << "seed " << seed;
    EXPECT_GT(second.orders, 100u);
  }
}

TEST(Replay, NamesTheFirstOrderThatDiffers) {
  Recorded recorded;
  recorded.arrive(false);
  recorded.forget_last();  // the order to start it
  recorded.tick();
  const std::string missing = replay(recorded.log()).difference;
  EXPECT_NE(
      missing.find("call 2: the log has \"no order\", this build \"start request 1000000, attempt 1, at backend 0 of "),
      std::string::npos)
      << missing;

  Recorded invented;
  invented.tick();
  invented.add(
      config::Ordered{{.to = {}, .request = {}, .what = policies::Answer{.code = policies::Code::queue_full}}});
  const std::string more = replay(invented.log()).difference;
  EXPECT_NE(
      more.find("call 1: the log has \"answer request 0 with queue_full, value 0 of 0, retry after 0.000000000 s\", "
                "this build \"no order\""),
      std::string::npos)
      << more;
}

TEST(Replay, TellsAKilledProcessFromAWrongOne) {
  Recorded recorded;
  recorded.arrive(false);
  recorded.forget_last();
  const Replayed killed = replay(recorded.log());
  EXPECT_EQ(killed.difference + killed.problem, "");
  EXPECT_NE(killed.note, "");
  recorded.close();
  EXPECT_NE(replay(recorded.log()).difference, "");
}

TEST(Replay, StopsWhereRecordsWereLost) {
  Recorded recorded;
  work(recorded);
  recorded.add(config::Gap{17});
  const Replayed played = replay(recorded.log());
  EXPECT_NE(played.problem.find("byte "), std::string::npos) << played.problem;
  EXPECT_NE(played.problem.find("17 records were lost here"), std::string::npos) << played.problem;
}

TEST(Replay, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(replay("").problem, "this is no event log of format 1");
  EXPECT_NE(replay(std::string(config::event_log_begin) + "\"build\":\"x\"}\n").problem.find("there is no record"),
            std::string::npos);
  Recorded falls;
  falls.tick();
  falls.pass(-1s);
  falls.tick();
  EXPECT_NE(replay(falls.log()).problem.find("time falls"), std::string::npos);
  Recorded ends;
  ends.add(config::Ticked{never});
  EXPECT_NE(replay(ends.log()).problem.find("time falls, or ends"), std::string::npos);
  policies::Plan doubled = small_plan(1);
  doubled.pools.push_back(doubled.pools.front());
  Recorded unsound;
  unsound.add(config::Replanned{Time() + 2h, doubled});
  EXPECT_NE(replay(unsound.log()).problem.find("a plan that names"), std::string::npos);
  std::string log = Recorded().log();
  log.resize(log.find('\n') + 1);
  const auto begun_with = [&log](config::Continued event) {
    std::string record(config::write_event(event, nullptr), '\0');
    config::write_event(event, record.data());
    return replay(log + record).problem;
  };
  EXPECT_NE(begun_with({"state", 1}).find("is damaged"), std::string::npos);
  EXPECT_NE(begun_with({"state", config::image_digest("state")}).find("is another build's"), std::string::npos);
  Recorded twice;
  twice.add(config::Planned{small_plan(1)});
  EXPECT_NE(replay(twice.log()).problem.find("a second beginning"), std::string::npos);
}

// Whatever a file holds: an answer, and no more than that.
TEST(Replay, SurvivesAnyBytes) {
  Recorded recorded;
  work(recorded);
  const std::string from_start = recorded.log();
  recorded.go_on_in_next();
  work(recorded, 2);
  const std::string from_midst = recorded.log();
  std::uint32_t noticed = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    std::string bad = seed % 2 == 0 ? from_start : from_midst;
    const std::size_t head = bad.find('\n') + 1;
    for (std::uint32_t n = 0; n <= seed % 3; ++n) {
      const std::uint64_t dice = draw(seed, n, 0);
      bad[head + below(dice, static_cast<std::uint32_t>(bad.size() - head))] = static_cast<char>(dice & 0xff);
    }
    if (seed % 5 == 0) bad.resize(head + below(draw(seed, 9, 0), static_cast<std::uint32_t>(bad.size() - head)));
    const Replayed played = replay(bad);
    noticed += static_cast<std::uint32_t>(!played.difference.empty() || !played.problem.empty());
    read_event_trace(bad, "bad", 0);
  }
  EXPECT_GT(noticed, 1000u);
}

TEST(EventTrace, HasTheArrivalsOfALog) {
  Recorded recorded;
  recorded.arrive(true);
  recorded.pass(2s);
  recorded.arrive(false);
  recorded.end_oldest(policies::End::ok);
  recorded.pass(1s);
  recorded.arrive(true);
  const TraceResult trace = read_event_trace(recorded.log(), "log", 0);
  ASSERT_EQ(trace.problem, "");
  ASSERT_EQ(trace.requests.size(), 3u);
  EXPECT_EQ(trace.requests[1].at, 2s);
  EXPECT_EQ(trace.requests[2].at, 3s);
  EXPECT_EQ(trace.requests[0].input, 90u);  // as reported
  EXPECT_EQ(trace.requests[1].input, 100u);
  EXPECT_EQ(trace.requests[0].output, 30u);
  EXPECT_EQ(trace.requests[1].output, 30u);  // the mean of those that are known
  EXPECT_TRUE(trace.says_which_stream);
  EXPECT_TRUE(trace.requests[0].stream);
  EXPECT_FALSE(trace.requests[1].stream);
  EXPECT_EQ(read_event_trace(recorded.log(), "log", 2).requests.size(), 2u);
  EXPECT_EQ(read_event_trace(Recorded().log(), "log", 0).problem, "log: no requests");
}

}  // namespace
}  // namespace headgate::loadtest
