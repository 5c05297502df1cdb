// What a tenant may have, what its requests are charged, and what they have cost when they end.
#include <algorithm>

#include "policies/dispatcher_state.hpp"
#include "policies/outcome.hpp"

namespace headgate::policies {

// One that no plan has named counts as the first, who has no key.
std::uint32_t Dispatcher::State::known_tenant(TenantId id) const {
  return index(id) < tenants.size() ? static_cast<std::uint32_t>(index(id)) : 0;
}

Class Dispatcher::State::class_of(const Arrival& arrival) const {
  return std::max(arrival.klass, tenants[known_tenant(arrival.tenant)].klass());
}

std::optional<Answer> Dispatcher::State::over_limits(Time now, const Record& record, std::uint64_t bits) const {
  const Tenant& tenant = tenants[record.tenant];
  if (!tenant.limited()) return std::nullopt;
  std::optional<Answer> no = tenant.over(now, record.reserved_tokens);
  if (no) no->retry_after = jittered(no->retry_after, bits);
  return no;
}

void Dispatcher::State::set_turn(std::uint32_t slot) {
  const Record& record = records[slot];
  Time by{};  // first in, first out
  if (record.by_newest) {
    by -= Nanos{static_cast<std::int64_t>(record.ticket)};  // before all who wait by a deadline, the later the sooner
  } else if (pools[record.pools().front()].limits.order != QueueOrder::fifo) {
    by = std::min(record.content_by, record.head_by);
  }
  tickets.set_turn(slot, {.by = by,
                          .number = record.ticket,
                          .klass = record.klass,
                          .tenant = record.tenant,
                          .weight = tenants[record.tenant].weight(),
                          .tokens = record.estimate.input + 2 * record.estimate.output_q50});
}

// Served out of that pool's queue: fairness is charged there, once.
void Dispatcher::State::charge(Time now, std::uint32_t slot, std::uint32_t pool) {
  Record& record = records[slot];
  const auto links = std::span(record.links).first(record.links_n);
  const auto link = std::ranges::find(links, pool);
  if (record.lane != Lane::fresh || link == links.end()) return;
  const auto place = slot * pools_max + static_cast<std::uint32_t>(link - links.begin());
  record.charge = tickets.charge(now, pools[pool].queue, place);
  record.charged_in = pool;
}

// An attempt has ended; one whose answer nobody has seen costs nothing.
void Dispatcher::State::use(Record& record, const Outcome& outcome) {
  if (!record.committed && !succeeded(outcome)) return;
  const std::uint64_t input = outcome.input_tokens > 0 ? outcome.input_tokens : record.estimate.input;
  record.used_tokens += input + outcome.output_tokens;
  record.used_cost += input + 2ull * outcome.output_tokens;
  if (succeeded(outcome) && !outcome.estimated) {
    routes[record.route].estimator.learn(record.raw_prompt_tokens, outcome.input_tokens, outcome.output_tokens,
                                         record.choices);
  }
}

// At the end of the request.
void Dispatcher::State::settle(std::uint32_t slot) {
  const Record& record = records[slot];
  if (!record.taken) return;
  const auto difference = [](std::uint64_t used, std::uint64_t taken) {
    return static_cast<std::int64_t>(used) - static_cast<std::int64_t>(taken);
  };
  tenants[record.tenant].ended(clock, difference(record.used_tokens, record.reserved_tokens));
  if (record.charge.flow == FairQueue::none) return;
  const Turn& turn = tickets.turn(slot);
  pools[record.charged_in].queue.fair().correct(record.charge, turn, difference(record.used_cost, turn.tokens));
}

}  // namespace headgate::policies
