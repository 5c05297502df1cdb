// What a decision costs: a request from open to ended (arrive, first_token, ended), with a standing load of half of all
// units so that choices are real. One thread, no lock. Arguments: backends, pools.
#include <benchmark/benchmark.h>

#include <vector>

#include "policies/dispatcher.hpp"

namespace {

using namespace headgate;
using namespace headgate::policies;

Plan plan_of(std::uint32_t backends, std::uint32_t pools, Balance balance) {
  Plan plan;
  RoutePlan route{.id = RouteId{0}, .pools = {}, .budget = {}, .timeouts = {}, .retry = {}};
  for (std::uint32_t p = 0; p < pools; ++p) {
    PoolPlan pool{.id = PoolId{p}, .backends = {}, .balance = balance, .queue = {}};
    for (std::uint32_t b = p; b < backends; b += pools) {
      plan.endpoints.push_back({.id = EndpointId{b}, .max_in_flight = 16, .health = {}});
      pool.backends.push_back({BackendId{b}, EndpointId{b}, 1});
    }
    plan.pools.push_back(pool);
    route.pools.push_back(PoolId{p});
  }
  plan.routes.push_back(route);
  return plan;
}

AttemptId started(const Orders& orders) { return std::get<Start>(orders.back().what).attempt; }

void open_to_ended(benchmark::State& state, Balance balance) {
  const auto backends = static_cast<std::uint32_t>(state.range(0));
  Dispatcher dispatcher(plan_of(backends, static_cast<std::uint32_t>(state.range(1)), balance));
  Orders orders;
  Time now = Time{} + 1h;
  Arrival arrival{.body_bytes = 1024, .stream = true};
  std::vector<AttemptId> running;
  const auto start = [&] {
    now += 1us;
    arrival.received = now;
    orders.clear();
    dispatcher.arrive(now, arrival, orders);
    return started(orders);
  };
  while (running.size() < backends * 8) running.push_back(start());
  std::size_t oldest = 0;
  for (auto _ : state) {
    const AttemptId fresh = start();
    orders.clear();
    dispatcher.first_token(now += 1us, fresh, orders);
    dispatcher.ended(now += 1us, running[oldest], Outcome{}, orders);
    running[oldest] = fresh;
    if (++oldest == running.size()) oldest = 0;
  }
}
BENCHMARK_CAPTURE(open_to_ended, p2c, Balance::p2c)->Args({32, 1})->Args({32, 4})->Args({1000, 1})->Args({1000, 4});
BENCHMARK_CAPTURE(open_to_ended, least_in_flight, Balance::least_in_flight)
    ->Args({32, 1})
    ->Args({32, 4})
    ->Args({1000, 1});
BENCHMARK_CAPTURE(open_to_ended, round_robin, Balance::round_robin)->Args({32, 1})->Args({1000, 1});
BENCHMARK_CAPTURE(open_to_ended, weighted, Balance::weighted)->Args({32, 1})->Args({1000, 1});

// Every unit taken: each request waits and is served by the unit that the oldest gives back.
void through_the_queue(benchmark::State& state) {
  const auto backends = static_cast<std::uint32_t>(state.range(0));
  Dispatcher dispatcher(plan_of(backends, static_cast<std::uint32_t>(state.range(1)), Balance::p2c));
  Orders orders;
  Time now = Time{} + 1h;
  Arrival arrival{.body_bytes = 1024, .stream = true};
  std::vector<AttemptId> running;
  const auto arrive = [&] {
    now += 1us;
    arrival.received = now;
    dispatcher.arrive(now, arrival, orders);
  };
  for (std::uint32_t i = 0; i < backends * 16; ++i) {
    arrive();
    running.push_back(started(orders));
    orders.clear();
  }
  for (int i = 0; i < 100; ++i) arrive();
  std::size_t oldest = 0;
  for (auto _ : state) {
    orders.clear();
    arrive();
    dispatcher.ended(now += 1us, running[oldest], Outcome{}, orders);
    running[oldest] = started(orders);
    dispatcher.first_token(now += 1us, running[oldest], orders);
    if (++oldest == running.size()) oldest = 0;
  }
}
BENCHMARK(through_the_queue)->Args({32, 1})->Args({32, 4})->Args({1000, 1});

}  // namespace
