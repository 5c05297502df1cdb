#include "policies/queue.hpp"

#include <gtest/gtest.h>

#include "policies/alarms.hpp"
#include "policies/base/random.hpp"

namespace headgate::policies {
namespace {

std::vector<std::uint32_t> order(const Tickets& tickets, const PoolQueue& queue, Lane lane) {
  std::vector<std::uint32_t> slots;
  for (std::uint32_t at = Tickets::first(queue, lane); at != Tickets::none; at = tickets.next(at)) {
    slots.push_back(Tickets::slot_of(at));
  }
  return slots;
}

TEST(Queue, LanesAreFirstInFirstOutAndAnybodyMayLeave) {
  Tickets tickets;
  tickets.grow(8);
  PoolQueue queue;
  for (const std::uint32_t slot : {3u, 1u, 4u, 0u, 5u}) tickets.link(queue, slot, 2, Lane::fresh, 10);
  tickets.link(queue, 7, 0, Lane::retries, 5);
  EXPECT_EQ(queue.queued(), 6u);
  EXPECT_EQ(queue.bytes(), 55u);
  tickets.unlink(queue, 4, 2, Lane::fresh, 10);
  EXPECT_EQ(order(tickets, queue, Lane::fresh), (std::vector<std::uint32_t>{3, 1, 0, 5}));
  tickets.unlink(queue, 3, 2, Lane::fresh, 10);
  tickets.unlink(queue, 5, 2, Lane::fresh, 10);
  EXPECT_EQ(order(tickets, queue, Lane::fresh), (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(order(tickets, queue, Lane::retries), (std::vector<std::uint32_t>{7}));
  EXPECT_EQ(Tickets::first(queue, Lane::evacuees), Tickets::none);
  tickets.unlink(queue, 1, 2, Lane::fresh, 10);
  tickets.unlink(queue, 0, 2, Lane::fresh, 10);
  tickets.unlink(queue, 7, 0, Lane::retries, 5);
  EXPECT_EQ(queue.queued(), 0u);
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_EQ(Tickets::first(queue, Lane::fresh), Tickets::none);
}

TEST(Queue, OneTicketWaitsInSeveralQueues) {
  Tickets tickets;
  tickets.grow(2);
  PoolQueue near, far;
  tickets.link(near, 0, 0, Lane::fresh, 1);
  tickets.link(far, 0, 1, Lane::fresh, 1);
  tickets.link(far, 1, 0, Lane::fresh, 1);
  tickets.unlink(far, 0, 1, Lane::fresh, 1);
  EXPECT_EQ(order(tickets, far, Lane::fresh), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(order(tickets, near, Lane::fresh), (std::vector<std::uint32_t>{0}));
}

TEST(Queue, IsBoundedByCountAndBytes) {
  Tickets tickets;
  tickets.grow(4);
  PoolQueue queue;
  const QueueOptions options{.requests_max = 2, .bytes_max = 100};
  EXPECT_TRUE(queue.admits(options, Lane::fresh, 100));
  EXPECT_FALSE(queue.admits(options, Lane::fresh, 101));
  tickets.link(queue, 0, 0, Lane::fresh, 60);
  EXPECT_TRUE(queue.admits(options, Lane::fresh, 40));
  EXPECT_FALSE(queue.admits(options, Lane::fresh, 41));
  tickets.link(queue, 1, 0, Lane::fresh, 10);
  EXPECT_FALSE(queue.admits(options, Lane::fresh, 0));
}

TEST(Queue, RepeatsTakeNoRoomFromNewRequests) {
  Tickets tickets;
  tickets.grow(4);
  PoolQueue queue;
  const QueueOptions options{.requests_max = 2, .bytes_max = 100};
  tickets.link(queue, 0, 0, Lane::repeats, 60);
  tickets.link(queue, 1, 0, Lane::repeats, 40);
  EXPECT_FALSE(queue.admits(options, Lane::repeats, 0));
  EXPECT_TRUE(queue.admits(options, Lane::fresh, 100));
  EXPECT_EQ(queue.ahead_of(Lane::fresh), 0u);
  EXPECT_EQ(queue.ahead_of(Lane::repeats), 2u);
  tickets.link(queue, 2, 0, Lane::fresh, 7);
  tickets.unlink(queue, 0, 0, Lane::repeats, 60);
  EXPECT_EQ(queue.bytes_ahead_of(Lane::fresh), 7u);
  EXPECT_EQ(queue.bytes_ahead_of(Lane::repeats), 47u);
  EXPECT_TRUE(queue.admits(options, Lane::fresh, 93));
  EXPECT_FALSE(queue.admits(options, Lane::repeats, 0));
}

TEST(Alarms, RingInOrderOfTimeThenKey) {
  Alarms alarms;
  EXPECT_EQ(alarms.soonest(), never);
  alarms.set(4, Time{} + 3s);
  alarms.set(2, Time{} + 1s);
  alarms.set(9, Time{} + 1s);
  alarms.set(0, Time{} + 2s);
  alarms.set(4, Time{} + 500ms);  // moved
  alarms.clear(0);
  alarms.clear(7);  // never set
  std::vector<std::uint32_t> rung;
  while (!alarms.empty()) {
    rung.push_back(alarms.soonest_key());
    alarms.clear(rung.back());
  }
  EXPECT_EQ(rung, (std::vector<std::uint32_t>{4, 2, 9}));
}

TEST(Alarms, AgreeWithAPlainTableUnderAnyHistory) {
  Alarms alarms;
  std::vector<Time> table(50, never);
  for (std::uint64_t step = 0; step < 20000; ++step) {
    const std::uint64_t bits = draw(7, step, 0);
    const auto key = below(bits, 50);
    const Time when = (bits & 3) == 0 ? never : Time{} + Nanos{below(mix64(bits), 100)};
    alarms.set(key, when);
    table[key] = when;
    const auto soonest = std::min_element(table.begin(), table.end());
    ASSERT_EQ(alarms.soonest(), *soonest);
    if (*soonest != never) {
      ASSERT_EQ(alarms.soonest_key(), soonest - table.begin());
    }
    ASSERT_EQ(alarms.size(),
              static_cast<std::size_t>(std::count_if(table.begin(), table.end(), [](Time t) { return t != never; })));
  }
}

}  // namespace
}  // namespace headgate::policies
