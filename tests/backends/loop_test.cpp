// The event loop and what runs on it: posted work, timers, tasks.
#include "backends/io/loop.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "backends/io/task.hpp"
#include "backends/io/waker.hpp"

namespace headgate::backends {
namespace {

using namespace std::chrono_literals;

TEST(Loop, RunsWhatOtherThreadsPostInTheirOrder) {
  Loop loop;
  std::vector<int> seen[2];
  const auto poster = [&](int who) {
    for (int i = 0; i < 1000; ++i) loop.post([&seen, who, i] { seen[who].push_back(i); });
  };
  std::jthread one(poster, 0), two(poster, 1);
  while (seen[0].size() < 1000 || seen[1].size() < 1000) loop.run_once(1s);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(seen[0][static_cast<std::size_t>(i)], i);
    EXPECT_EQ(seen[1][static_cast<std::size_t>(i)], i);
  }
}

TEST(Loop, WhatIsPostedByPostedWorkRunsInALaterTurn) {
  Loop loop;
  int depth = 0;
  std::function<void()> again = [&] {
    if (++depth < 5) {
      loop.post(again);
    } else {
      loop.stop();
    }
  };
  loop.post(again);
  loop.run();
  EXPECT_EQ(depth, 5);
}

// Those that are due in one turn, whichever was made first; one that is set anew in it has its turn as well.
TEST(Loop, TimersRingInTheOrderInWhichTheyWereDue) {
  Loop loop;
  std::string rung;
  Loop::Timer a(loop, [&] { rung += 'a'; }), b(loop, [&] { rung += 'b'; }), c(loop, [&] {
    rung += 'c';
    if (rung.size() < 4) c.set(std::chrono::steady_clock::now() - 1ms);
  });
  const Time now = std::chrono::steady_clock::now();
  a.set(now - 10ms);
  b.set(now - 30ms);
  c.set(now - 20ms);
  while (rung.size() < 4) loop.run_once(1s);
  EXPECT_EQ(rung.substr(0, 2), "bc");
  EXPECT_EQ(rung, "bcac");
}

TEST(Loop, TimersRingOnceNeverEarly) {
  Loop loop;
  int first = 0, second = 0;
  bool early = false;
  const Time start = std::chrono::steady_clock::now();
  Loop::Timer a(loop, [&] {
    ++first;
    early = early || std::chrono::steady_clock::now() < start + 10ms;
  });
  Loop::Timer b(loop, [&] {
    ++second;
    loop.stop();
  });
  Loop::Timer silent(loop, [&] { ADD_FAILURE() << "was taken back"; });
  a.set(start + 10ms);
  b.set(start + 30ms);
  silent.set(start + 20ms);
  silent.set(never);
  loop.run();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  EXPECT_FALSE(early);
}

Task<int> twice(Waker& waker, int value) {
  co_await waker.wait();
  co_return 2 * value;
}

Task<int> at_once(int value) { co_return value; }

Task<> add_up(Waker& waker, int& sum) {
  const int now = co_await at_once(1);
  sum += now;
  const int later = co_await twice(waker, 10);
  sum += later;
}

TEST(Task, RunsToItsFirstWaitAtOnceAndOnWhenWoken) {
  Waker waker;
  int sum = 0;
  bool ended = false;
  spawn(add_up(waker, sum), [&] { ended = true; });
  EXPECT_EQ(sum, 1);
  EXPECT_FALSE(ended);
  waker.wake();
  EXPECT_EQ(sum, 21);
  EXPECT_TRUE(ended);
}

TEST(Task, RemembersAWakeThatCameBeforeTheWait) {
  Waker waker;
  waker.wake();
  int sum = 0;
  bool ended = false;
  spawn(add_up(waker, sum), [&] { ended = true; });
  EXPECT_TRUE(ended);
}

Task<> many_at_once(int& sum) {
  for (int i = 0; i < 1'000'000; ++i) {
    const int one = co_await at_once(1);
    sum += one;
  }
}

TEST(Task, TasksThatNeverWaitUseNoStack) {
  int sum = 0;
  spawn(many_at_once(sum), [] {});
  EXPECT_EQ(sum, 1'000'000);
}

Task<int> broken() {
  throw std::runtime_error("broken");
  co_return 0;
}

Task<> around(std::string& said) {
  try {
    [[maybe_unused]] const int never_had = co_await broken();
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
}

TEST(Task, WhatItThrowsComesOutOfItsWait) {
  std::string said;
  spawn(around(said), [] {});
  EXPECT_EQ(said, "broken");
}

}  // namespace
}  // namespace headgate::backends
