// An attempt's content begins, an attempt is over, a caller leaves.
#include <algorithm>

#include "policies/dispatcher_state.hpp"
#include "policies/outcome.hpp"

namespace headgate::policies {
namespace {

// The host's name for the attempt out; anything else is stale.
bool is_out(const Record& record, AttemptId attempt) {
  return record.stage == Stage::running && record.attempts == attempt.n;
}

}  // namespace

void Dispatcher::State::first_token(Time now, AttemptId attempt, Orders& orders) {
  advance(now, orders);
  const std::uint32_t slot = records.find(attempt.request);
  if (slot == Records::none || !is_out(records[slot], attempt)) return;
  Record& record = records[slot];
  if (record.committed) return;
  record.committed = true;
  record.content_at = now;
  if (record.stream) pools[record.pool].forecast.first_content(now - record.started_at);
  Endpoint& endpoint = endpoints[record.endpoint];
  endpoint.health.first_content(now, record.trial);
  set_limit(record.endpoint);
  set_alarm(record.endpoint);
  record.trial = false;
  end_prefill(record);
  refresh(record.endpoint);
  serve(now, record.endpoint, orders);
}

void Dispatcher::State::end_prefill(Record& record) {
  endpoints[record.endpoint].prefill_tokens -= record.prefilling;
  endpoints[record.endpoint].pace.prompt_read(record.prefilling);
  record.prefilling = 0;
}

// What the outcome says about the endpoint. Before the unit is given back: a death counts what is in flight with it.
void Dispatcher::State::judge(Time now, const Record& record, const Outcome& outcome) {
  Endpoint& endpoint = endpoints[record.endpoint];
  const Fault fault = fault_of(outcome);
  if (fault == Fault::ours || fault == Fault::load || fault == Fault::hard) ++endpoint.failures;
  if (fault == Fault::load) {
    endpoint.health.overloaded(now, outcome.retry_after, record.trial, !record.trial || may_eject(record.endpoint));
  } else if (fault == Fault::hard) {
    if (looks_dead(outcome.end)) {
      endpoint.evacuation.died(loads[record.endpoint].in_flight, others_healthy(record.endpoint, record.pool));
    }
    const bool asked = endpoint.health.about_to_eject(now, record.trial);
    endpoint.health.failed(now, record.trial, asked && may_eject(record.endpoint));
  } else if (succeeded(outcome)) {
    ++endpoint.successes;
    endpoint.evacuation.succeeded();
    endpoint.health.succeeded(now, record.trial, record.committed);
  } else {
    endpoint.health.no_verdict(record.trial);  // the caller's fault, ours, or called off
  }
}

void Dispatcher::State::ended(Time now, AttemptId attempt, const Outcome& outcome, Orders& orders) {
  advance(now, orders);
  const std::uint32_t slot = records.find(attempt.request);
  if (slot == Records::none || !is_out(records[slot], attempt)) return;
  Record& record = records[slot];
  const std::uint32_t e = record.endpoint;
  const Standing before = endpoints[e].standing;
  judge(now, record, outcome);
  learn_of_limit(record, outcome, now);
  use(record, outcome);
  record.trial = false;
  end_prefill(record);
  Pool& pool = pools[record.pool];
  --pool.in_flight;
  loads.give_back(e);
  set_limit(e);
  refresh(e);
  set_alarm(e);
  if (lost(before, endpoints[e].standing)) forgive_slow(now, e, orders);

  const bool off = outcome.end == End::cancelled;
  const Nanos held = now - record.started_at;
  if (outcome.end == End::ok || off || outcome.end == End::out_of_time) pool.forecast.released(now, held);
  if (succeeded(outcome)) {
    routes[record.route].retry_budget.deposit();
    if (!record.stream) pool.forecast.completed(held);
    pool.forecast.answered(now, record.stream && record.committed ? record.content_at - record.started_at : Nanos{0},
                           held, outcome.output_tokens);
  }
  if (record.gone || off || outcome.end == End::ok) {
    record.stage = Stage::free;
    release(slot);
  } else {
    fail_over(now, slot, outcome, orders);
  }
  if (lost(before, endpoints[e].standing)) reconsider_waiting(now, e, orders);
  serve(now, e, orders);
}

// Pays for one more attempt: what was never delivered is free once; an evacuee takes of the allowance; else credit.
bool Dispatcher::State::pay(Record& record, const Outcome& outcome) {
  record.why = Why::retry;
  if (never_delivered(outcome.end) && !record.free_retry_used) {
    record.free_retry_used = true;
    return true;
  }
  if (looks_dead(outcome.end) && endpoints[record.endpoint].evacuation.take()) {
    record.why = Why::evacuation;
    return true;
  }
  return routes[record.route].retry_budget.withdraw();
}

// Another backend that it has not tried, at once or at the head of the queue; else the same one after a pause; else
// the answer.
void Dispatcher::State::fail_over(Time now, std::uint32_t slot, const Outcome& outcome, Orders& orders) {
  Record& record = records[slot];
  record.stage = Stage::free;  // its unit is given back
  record.fallback = answer_of(outcome, record.committed);
  const Route& route = routes[record.route];
  if (record.committed || route.gone() || now >= record.head_by ||
      !may_try_again(route.retry, outcome, record.attempts)) {
    return answer(slot, {.code = record.fallback}, orders);
  }
  if (std::ranges::find(record.not_these(), record.endpoint) == record.not_these().end()) {
    if (record.tried_n == record.tried.size()) {
      std::shift_left(record.tried.begin(), record.tried.end(), 1);
      --record.tried_n;
    }
    record.tried[record.tried_n++] = record.endpoint;
  }
  if (!has_untried(record)) return try_alone(now, slot, outcome, orders);
  if (!pay(record, outcome)) return answer(slot, {.code = record.fallback}, orders);
  if (!start_somewhere(now, slot, orders)) queue_at_head(now, slot);
}

void Dispatcher::State::try_alone(Time now, std::uint32_t slot, const Outcome& outcome, Orders& orders) {
  Record& record = records[slot];
  const Route& route = routes[record.route];
  const Endpoint& same = endpoints[record.endpoint];
  const bool some_usable = std::ranges::any_of(record.pools(), [&](auto p) { return pools[p].eligible > 0; });
  const bool cooling_allowed = same.planned && same.health.state() == HealthState::cooling &&
                               same.health.cooldown_last_backend() == LastCooling::attempt;
  // Our own credentials will not be better after a pause.
  const bool usable = fault_of(outcome) != Fault::ours && (some_usable || cooling_allowed);
  const Nanos pause =
      wait_before_same(route.retry, outcome.retry_after, record.waits_alone, bits(record, Use::backoff));
  const Time at = after(now, pause);
  if (!usable || at >= record.head_by || !pay(record, outcome)) return answer(slot, {.code = record.fallback}, orders);
  ++record.waits_alone;
  record.stage = Stage::delayed;
  ++waiting;
  request_alarms.set(slot, at);
}

// The pause is over. What it has not tried and has come up meanwhile is preferred, then all but what failed last.
void Dispatcher::State::try_again(Time now, std::uint32_t slot, Orders& orders) {
  Record& record = records[slot];
  request_alarms.clear(slot);
  --waiting;
  record.stage = Stage::free;
  if (now >= record.head_by) return answer_expired(now, slot, orders);  // woken late
  if (!has_untried(record)) {
    record.tried[0] = record.endpoint;
    record.tried_n = 1;
  }
  if (!has_untried(record)) record.tried_n = 0;
  if (start_somewhere(now, slot, orders)) return;
  if (hopeful(record)) {
    queue_at_head(now, slot);
  } else if (!start_on_cooling(now, slot, orders)) {
    answer(slot, {.code = record.fallback}, orders);
  }
}

void Dispatcher::State::caller_gone(Time now, RequestId request, Orders& orders) {
  advance(now, orders);
  const std::uint32_t slot = records.find(request);
  if (slot == Records::none) return;
  if (records[slot].stage == Stage::running) {
    records[slot].gone = true;  // its unit comes back with ended()
  } else {
    release(slot);
  }
}

}  // namespace headgate::policies
