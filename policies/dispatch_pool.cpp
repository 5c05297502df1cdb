// Which pools of its route a request may use, and in which order it looks at them.
#include <algorithm>
#include <cmath>

#include "policies/dispatcher_state.hpp"

namespace headgate::policies {
namespace {

double usd(const PoolOffer& offer, double input_tokens, double output_tokens) {
  return (input_tokens * offer.input_usd + output_tokens * offer.output_usd) / 1e6;
}

}  // namespace

PoolCandidate Dispatcher::State::candidate(Time now, const Record& record, std::uint32_t p) const {
  const Pool& pool = pools[p];
  const Forecast& forecast = pool.forecast;
  const TokenEstimate& tokens = record.estimate;
  PoolCandidate result;
  result.pool = p;
  result.weight = pool.offer.weight;
  result.quality = pool.offer.quality;
  result.expected_usd = usd(pool.offer, tokens.input, tokens.output_q50);
  result.most_usd = usd(pool.offer, tokens.input, record.output_most);
  if (forecast.stale(now, pool.in_flight)) return result;
  const bool at_once = pool.balancer.open().count() > 0;
  const std::optional<Nanos> wait = at_once ? Nanos{0} : wait_in(now, pool, seeker(record));
  const Nanos tpot = forecast.tpot();
  const BudgetOptions &of_class = classes[static_cast<std::size_t>(record.klass)].budget,
                      &of_route = routes[record.route].budget;
  const Nanos itl = std::min(of_class.itl.value_or(Nanos::max()), of_route.itl.value_or(Nanos::max()));
  const Nanos whole = forecast.ttft_q90() + tpot * tokens.output_q90;
  result.in_budget = tpot <= itl && admit({wait, forecast.ttft_q90(), record.content_by - now}).admitted &&
                     admit({wait, whole, record.total_by - now}).admitted;
  result.predicted = wait.value_or(Nanos{0}) + forecast.ttft_q50();
  if (!record.stream) result.predicted += tpot * tokens.output_q50;
  return result;
}

// How long it waits for the first pool where no TTFT budget says so: pool_choice.hpp.
void Dispatcher::State::rank_pools_for(Time now, std::uint32_t slot) {
  Record& record = records[slot];
  const Route& route = routes[record.route];
  std::array<PoolCandidate, pools_max> candidates;
  const std::size_t n = std::min<std::size_t>(route.pools.size(), pools_max);
  for (std::size_t i = 0; i < n; ++i) candidates[i] = candidate(now, record, route.pools[i]);
  record.ranking = rank_pools(route.order, std::span(candidates).first(n), record.wish, bits(record, Use::pool));
  record.patience = never;
  if (record.ranking.n < 2) return;
  if (route.order == PoolOrder::fastest) record.patience = after(now, record.ranking.second_later);
  if (route.order == PoolOrder::cheapest_within_budget && record.total_by != never) {
    const Forecast& forecast = pools[record.pools().front()].forecast;
    const Nanos usable = (record.total_by - record.received) / 10 * 7;
    const Nanos service = forecast.ttft_q90() + forecast.tpot() * record.estimate.output_q90;
    record.patience = record.received + std::max(usable - service, Nanos{0});
  }
}

Answer Dispatcher::State::too_dear(const Record& record) const {
  double least = unlimited_usd;
  for (const std::uint32_t p : routes[record.route].pools) {
    if (pools[p].offer.quality < record.wish.quality_min) continue;
    least = std::min(least, usd(pools[p].offer, record.estimate.input, record.output_most));
  }
  const auto millionths = [](double amount) { return std::llround(std::min(amount, 1e9) * 1e6); };
  return {.code = Code::cost_budget_unmeetable,
          .value = least == unlimited_usd ? -1 : millionths(least),
          .limit = millionths(record.wish.usd_max)};
}

}  // namespace headgate::policies
