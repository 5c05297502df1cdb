#include "gateway/pipeline.hpp"

#include "gateway/attempt.hpp"
#include "gateway/conclude.hpp"
#include "gateway/cors.hpp"
#include "gateway/intake.hpp"
#include "gateway/models.hpp"
#include "gateway/request_log.hpp"

namespace headgate::gateway {

namespace {

// Nobody waits for this request any more, or the host stops: what it was ordered to do is given back.
void withdraw(Exchange& x) {
  if (x.inbox) {
    if (const auto* start = std::get_if<policies::Start>(&x.inbox->order.what))
      x.shard.shared.host.abandon(start->attempt);
    x.inbox.reset();
  }
  x.shard.shared.host.caller_gone(x.request.id);
  x.request.id = policies::RequestId::none;
}

backends::Task<> withdraw_and_say_so(Exchange& x) {
  withdraw(x);
  if (x.caller->ended() || !x.stopping) {
    note_cancelled(x);
  } else {
    const RequestState& r = x.request;
    const bool may_be_repeated = r.attempts == 0 || r.route->after_delivery;
    RefusalAnswer no{.refusal = Refusal::shutting_down, .repeat_ok = !r.budgets.repeat && may_be_repeated};
    co_await answer_ourselves(x, no);
  }
}

// From arrival at the Dispatcher to the end: waits, tries, answers.
backends::Task<> dispatch(Exchange& x, policies::Arrival arrival) {
  RequestState& r = x.request;
  const DispatchHost::Arrived arrived = x.shard.shared.host.arrive(arrival, x.inbox);
  r.id = arrived.id;
  r.arrived = arrived.at;
  r.rates = arrived.rates;
  for (bool at_once = true;; at_once = false) {
    for (; !x.inbox && !x.abandoned(); at_once = false) co_await x.pause(never);
    if (x.abandoned()) {
      co_await withdraw_and_say_so(x);
      co_return;
    }
    const Delivery delivery = *std::exchange(x.inbox, std::nullopt);
    if (const auto* answer = std::get_if<policies::Answer>(&delivery.order.what)) {
      if (answer->code == policies::Code::queue_full) x.shard.full_route = r.route->id;
      co_await conclude(x, *answer);
      co_return;
    }
    const Time now = at_once ? arrived.at : x.shard.now();
    if (r.dispatched == Time()) r.dispatched = now;
    Attempt attempt(x, std::get<policies::Start>(delivery.order.what), delivery.target, now);
    const bool answered = co_await attempt.run();
    if (answered) co_return;
    // A caller that takes nothing is treated as one that left.
    if (r.outcome.end == policies::End::cancelled && !x.stopping) x.caller->close();
  }
}

// What is answered from memory. False: this needs a backend.
bool answer_from_memory(Exchange& x) {
  RequestState& r = x.request;
  std::string body;
  bool ok = true;
  switch (r.operation) {
    case Operation::healthz:
      body = "{\"status\":\"ok\"}";
      break;
    case Operation::readyz:
      ok = x.shard.shared.ready();
      body = ok ? "{\"status\":\"ready\"}" : "{\"status\":\"not ready\"}";
      break;
    case Operation::models:
      append_model_list(body, *r.catalog, r.caller.identity);
      break;
    case Operation::preflight:
      write_preflight_answer(x);
      return true;
    case Operation::model:
      break;
    default:
      return false;
  }
  write_json_answer(x, ok ? 200 : 503, body);
  return true;
}

// GET /v1/models/{id}: the one whose absence is a refusal.
std::optional<RefusalAnswer> answer_model(Exchange& x) {
  RequestState& r = x.request;
  std::string body;
  const std::optional<std::string> name = model_in_target(x.head.target);
  if (!name || !append_model(body, *r.catalog, r.caller.identity, *name)) {
    r.cause_detail = name.value_or(std::string(x.head.target));
    return RefusalAnswer{.refusal = Refusal::model_not_found, .detail = r.cause_detail};
  }
  write_json_answer(x, 200, body);
  return std::nullopt;
}

}  // namespace

backends::Task<> serve_request(Exchange& x) {
  x.shard.counters.requests_in_progress.add();
  policies::Arrival arrival;
  std::optional<RefusalAnswer> no = check_head(x);
  if (!no) no = co_await read_body(x);
  if (!no && x.request.operation == Operation::model) {
    no = answer_model(x);
  } else if (!no && !answer_from_memory(x)) {
    no = check_body(x, arrival);
    if (!no) co_await dispatch(x, arrival);
  }
  if (x.caller->ended() && !x.request.finished) {
    note_cancelled(x);
  } else if (no && !x.request.finished) {
    co_await answer_ourselves(x, *no);
  } else if (!x.request.finished) {
    co_await flush_answer(x);
  }
  x.idle_since = x.shard.now();
  record_request(x, x.idle_since);
  x.request.id = policies::RequestId::none;
  x.body_hold.release();
  x.shard.counters.requests_in_progress.sub();
  co_await leave_body(x);
}

}  // namespace headgate::gateway
