// No allocation once the tables have grown to the load. Under sanitizers there is nothing to count.
#ifndef HEADGATE_SANITIZED

#include <gtest/gtest.h>

#include <vector>

#include "policies/allocations.hpp"
#include "policies/base/random.hpp"
#include "policies/history.hpp"

namespace headgate::policies {
namespace {

// 64 units and some 30 waiting; every sixteenth attempt fails and is retried, callers leave, probes come.
struct Load {
  Dispatcher dispatcher{PlanOf{}
                            .pool(4, 8)
                            .pool(4, 8)
                            .route({0, 1})
                            .with([](Plan& plan) {
                              for (PoolPlan& pool : plan.pools) pool.queue.requests_max = 30;
                            })
                            .plan};
  Orders orders;
  std::vector<AttemptId> running;
  std::vector<RequestId> arrived;
  Time now = at(0s);
  std::uint64_t steps = 0;

  Load() {
    orders.reserve(256);
    running.reserve(256);
    arrived.reserve(1024);
  }
  void collect() {
    for (const Order& order : orders) {
      if (const auto* start = std::get_if<Start>(&order.what)) running.push_back(start->attempt);
    }
    orders.clear();
  }
  void step() {
    const std::uint64_t bits = draw(3, ++steps, 0);
    now += 1ms;
    if (running.size() < 64 || steps % 2 == 0) {
      Arrival arrival{.body_bytes = 100, .stream = true, .received = now};
      const RequestId id = dispatcher.arrive(now, arrival, orders);
      if (arrived.size() == 1024) arrived.clear();
      arrived.push_back(id);
    } else {
      const std::size_t which = below(bits, static_cast<std::uint32_t>(running.size()));
      const AttemptId attempt = running[which];
      running[which] = running.back();
      running.pop_back();
      if (bits % 16 != 0) dispatcher.first_token(now, attempt, orders);
      dispatcher.ended(now, attempt, bits % 16 == 0 ? status(500) : ok(), orders);
    }
    if (steps % 64 == 0) dispatcher.caller_gone(now, arrived[bits % arrived.size()], orders);
    if (steps % 100 == 0) dispatcher.probed(now, EndpointId{below(bits, 8)}, {bits % 2 == 0}, orders);
    dispatcher.tick(now, orders);
    collect();
  }
};

TEST(SteadyState, AllocatesNothing) {
  Load load;
  for (int i = 0; i < 50000; ++i) load.step();
  const std::size_t before = allocations();
  for (int i = 0; i < 50000; ++i) load.step();
  EXPECT_EQ(allocations(), before);
  EXPECT_GE(before, 10u) << "nothing is counted";
  Snapshot snapshot;
  load.dispatcher.snapshot(snapshot);
  EXPECT_GT(snapshot.requests, 50u) << "the load is no load";
}

}  // namespace
}  // namespace headgate::policies

#endif
