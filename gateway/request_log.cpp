#include "gateway/request_log.hpp"

#include "policies/outcome.hpp"

namespace headgate::gateway {

namespace {
bool lists_models(Operation operation) { return operation == Operation::models || operation == Operation::model; }
}  // namespace

void record_request(Exchange& x, Time ended) {
  RequestState& r = x.request;
  if (r.operation == Operation::healthz || r.operation == Operation::readyz) return;
  ShardCounters& counters = x.shard.counters;
  RouteCounters& route = r.route != nullptr ? counters.route(r.route->id) : counters.without_route();
  route.requests[static_cast<std::size_t>(r.ending)].add();
  route.input_tokens.add(r.input_tokens);
  route.cached_tokens.add(r.cached_tokens);
  route.output_tokens.add(r.output_tokens);
  const Nanos queued = r.arrived == Time() ? Nanos(0) : (r.dispatched == Time() ? ended : r.dispatched) - r.arrived;
  if (r.arrived != Time()) {
    route.queue_wait.observe(queued);
    route.total.observe(ended - r.received);
  }
  if (r.content_at != Time()) route.ttft.observe(r.content_at - r.received);
  const bool counted = r.input_tokens + r.output_tokens > 0;
  if (counted && !r.usage_reported) counters.usage_estimated.add();
  if (x.shard.shared.access_log.off() || (lists_models(r.operation) && r.ending == Ending::ok)) return;
  AccessEntry entry;
  entry.at = x.shard.wall_clock(ended);
  entry.request_id = x.request_id;
  entry.client = r.client;
  entry.key_name = r.caller.identity.name();
  entry.method = x.head.method;
  entry.path = x.head.target;
  entry.route = r.route != nullptr ? std::string_view(r.route->name) : std::string_view();
  entry.stream = r.skim.stream;
  entry.status = r.status;
  entry.bytes = r.bytes_out;
  entry.input_tokens = r.input_tokens;
  entry.output_tokens = r.output_tokens;
  entry.cached_tokens = r.cached_tokens;
  entry.estimated = counted && !r.usage_reported;
  entry.queued = queued;
  if (r.content_at != Time()) entry.ttft = r.content_at - r.received;
  entry.total = ended - r.received;
  entry.backend = r.target ? std::string_view(r.target->name) : std::string_view();
  entry.attempts = r.attempts;
  entry.outcome = r.ending;
  entry.cause = r.cause;
  if (r.attempts > 0 && r.outcome.end != policies::End::ok) entry.last_end = policies::name_of(r.outcome.end);
  x.shard.lines.append(entry);
}

}  // namespace headgate::gateway
