// What streams tell of an endpoint, and how many attempts it may have for that.
#include <algorithm>

#include "policies/dispatcher_state.hpp"
#include "policies/outcome.hpp"

namespace headgate::policies {

void Dispatcher::State::set_limit(std::uint32_t e) {
  const Endpoint& endpoint = endpoints[e];
  const bool adaptive = endpoint.limit.mode == LimitMode::adaptive;
  loads.set_limit(e, adaptive ? std::min(endpoint.max_in_flight, endpoint.adaptive.limit()) : endpoint.max_in_flight);
}

void Dispatcher::State::progress(Time now, std::span<const Progress> list, Orders& orders) {
  advance(now, orders);
  for (const Progress& of : list) {
    if (index(of.endpoint) >= endpoints.size()) continue;
    const auto e = static_cast<std::uint32_t>(index(of.endpoint));
    if (endpoints[e].limit.mode != LimitMode::adaptive) continue;
    if (!endpoints[e].adaptive.gaps(now, of.gaps, of.gap_sum, loads[e].in_flight)) continue;
    set_limit(e);
    refresh(e);
    serve(now, e, orders);
  }
}

void Dispatcher::State::learn_of_limit(const Record& record, const Outcome& outcome, Time now) {
  AdaptiveLimit& adaptive = endpoints[record.endpoint].adaptive;
  adaptive.attempted();
  if (fault_of(outcome) == Fault::load) adaptive.overloaded();
  if (!record.stream || !record.committed || !succeeded(outcome) || outcome.output_tokens < 2) return;
  adaptive.answered(record.content_at, (now - record.content_at) / (outcome.output_tokens - 1));
}

}  // namespace headgate::policies
