#include "policies/queue.hpp"

#include <gtest/gtest.h>

#include "policies/alarms.hpp"
#include "policies/base/random.hpp"

namespace headgate::policies {
namespace {

std::vector<std::uint32_t> order(const Tickets& tickets, const PoolQueue& queue, Lane lane) {
  std::vector<std::uint32_t> slots;
  for (std::uint32_t at = Tickets::first(queue, lane); at != Tickets::none; at = tickets.next(lane, at)) {
    slots.push_back(Tickets::slot_of(at));
  }
  return slots;
}

TEST(Queue, LanesAreFirstInFirstOutAndAnybodyMayLeave) {
  Tickets tickets;
  tickets.grow(8);
  PoolQueue queue;
  for (const std::uint32_t slot : {3u, 1u, 4u, 0u, 5u}) tickets.link(queue, slot, 2, Lane::retries, 10);
  tickets.link(queue, 7, 0, Lane::evacuees, 5);
  EXPECT_EQ(queue.queued(), 6u);
  EXPECT_EQ(queue.bytes(), 55u);
  tickets.unlink(queue, 4, 2, Lane::retries, 10);
  EXPECT_EQ(order(tickets, queue, Lane::retries), (std::vector<std::uint32_t>{3, 1, 0, 5}));
  tickets.unlink(queue, 3, 2, Lane::retries, 10);
  tickets.unlink(queue, 5, 2, Lane::retries, 10);
  EXPECT_EQ(order(tickets, queue, Lane::retries), (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(order(tickets, queue, Lane::evacuees), (std::vector<std::uint32_t>{7}));
  EXPECT_EQ(Tickets::first(queue, Lane::repeats), Tickets::none);
  tickets.unlink(queue, 1, 2, Lane::retries, 10);
  tickets.unlink(queue, 0, 2, Lane::retries, 10);
  tickets.unlink(queue, 7, 0, Lane::evacuees, 5);
  EXPECT_EQ(queue.queued(), 0u);
  EXPECT_EQ(queue.bytes(), 0u);
  EXPECT_EQ(Tickets::first(queue, Lane::retries), Tickets::none);
}

TEST(Queue, OneTicketWaitsInSeveralQueues) {
  Tickets tickets;
  tickets.grow(2);
  PoolQueue near, far;
  tickets.set_turn(0, {.number = 1});
  tickets.set_turn(1, {.number = 2});
  tickets.link(near, 0, 0, Lane::fresh, 1);
  tickets.link(far, 0, 1, Lane::fresh, 1);
  tickets.link(far, 1, 0, Lane::fresh, 1);
  EXPECT_EQ(Tickets::slot_of(Tickets::first(far, Lane::fresh)), 0u);
  tickets.unlink(far, 0, 1, Lane::fresh, 1);
  EXPECT_EQ(Tickets::slot_of(Tickets::first(far, Lane::fresh)), 1u);
  EXPECT_EQ(Tickets::slot_of(Tickets::first(near, Lane::fresh)), 0u);
  EXPECT_EQ(near.queued() + far.queued(), 2u);
}

TEST(Queue, IsBoundedByCountAndBytes) {
  Tickets tickets;
  tickets.grow(4);
  PoolQueue queue;
  const QueueOptions options{.requests_max = 2, .bytes_max = 100};
  EXPECT_TRUE(queue.admits(options, Lane::fresh, Class::interactive, 100));
  EXPECT_FALSE(queue.admits(options, Lane::fresh, Class::interactive, 101));
  tickets.link(queue, 0, 0, Lane::fresh, 60);
  EXPECT_TRUE(queue.admits(options, Lane::fresh, Class::interactive, 40));
  EXPECT_FALSE(queue.admits(options, Lane::fresh, Class::interactive, 41));
  tickets.link(queue, 1, 0, Lane::fresh, 10);
  EXPECT_FALSE(queue.admits(options, Lane::fresh, Class::interactive, 0));
}

TEST(Queue, RepeatsTakeNoRoomFromNewRequests) {
  Tickets tickets;
  tickets.grow(4);
  PoolQueue queue;
  const QueueOptions options{.requests_max = 2, .bytes_max = 100};
  tickets.link(queue, 0, 0, Lane::repeats, 60);
  tickets.link(queue, 1, 0, Lane::repeats, 40);
  EXPECT_FALSE(queue.admits(options, Lane::repeats, Class::interactive, 0));
  EXPECT_TRUE(queue.admits(options, Lane::fresh, Class::interactive, 100));
  EXPECT_EQ(queue.counted(Lane::fresh), 0u);
  EXPECT_EQ(queue.ahead_of(Lane::repeats, Class::interactive, 0, 1), 2u);
  tickets.link(queue, 2, 0, Lane::fresh, 7);
  tickets.unlink(queue, 0, 0, Lane::repeats, 60);
  EXPECT_EQ(queue.bytes_counted(Lane::fresh), 7u);
  EXPECT_EQ(queue.bytes_counted(Lane::repeats), 47u);
  EXPECT_TRUE(queue.admits(options, Lane::fresh, Class::interactive, 93));
  EXPECT_FALSE(queue.admits(options, Lane::repeats, Class::interactive, 0));
}

TEST(Queue, LowerClassesLeaveRoomForHigherOnes) {
  EXPECT_EQ(ceiling(Class::interactive, 1000), 1000u);
  EXPECT_EQ(ceiling(Class::standard, 1000), 950u);
  EXPECT_EQ(ceiling(Class::batch, 1000), 850u);
  EXPECT_EQ(ceiling(Class::sheddable, 1000), 700u);
  EXPECT_EQ(ceiling(Class::sheddable, 1), 1u);
  EXPECT_EQ(ceiling(Class::sheddable, 0), 0u);
  EXPECT_EQ(ceiling(Class::standard, 1ull << 60), (1ull << 60) / 100 * 95 + 73);
  Tickets tickets;
  tickets.grow(10);
  PoolQueue queue;
  const QueueOptions options{.requests_max = 10, .bytes_max = 100};
  std::uint32_t slot = 0;
  const std::array<std::pair<Class, std::uint32_t>, 4> filled{
      {{Class::sheddable, 7}, {Class::batch, 9}, {Class::standard, 10}, {Class::interactive, 10}}};
  for (const auto& [klass, room] : filled) {
    for (; queue.admits(options, Lane::fresh, klass, 1); ++slot) {
      tickets.set_turn(slot, {.number = slot, .klass = klass});
      tickets.link(queue, slot, 0, Lane::fresh, 1);
    }
    EXPECT_EQ(queue.queued(), room);
  }
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
