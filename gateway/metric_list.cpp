#include "gateway/metric_list.hpp"

#include <algorithm>
#include <numeric>

#include "gateway/metric_page.hpp"

namespace headgate::gateway {
namespace {

enum class Metric : std::uint8_t {
  requests,
  refusals,
  requests_in_progress,
  attempts,
  attempt_failures,
  backend_in_flight,
  backend_in_flight_limit,
  backend_health,
  backend_drained,
  backend_connections,
  backend_connections_max,
  connection_waits,
  connections_lent,
  health_changes,
  probe_failures,
  ejections,
  queued,
  queued_bytes,
  queued_by_class,
  retry_credit,
  caller_connections,
  connections_refused,
  connections_closed,
  accept_pauses,
  tls_failures,
  upstream_connections,
  tokens,
  usage_estimated,
  stream_events,
  sse_parse_errors,
  cancelled_by_caller,
  streams_cut,
  ttft,
  queue_wait,
  request_time,
  lock_held,
  body_bytes_held,
  certificate_expiry,
  access_log_dropped,
  event_log_lost,
  event_log_open,
  reloads,
  config_version,
  draining,
  process_start_time,
  build_info,
  count,
};

// In the order of Metric.
constexpr std::array<Family, static_cast<std::size_t>(Metric::count)> families{{
    {"headgate_requests_total", Kind::counter, "Requests that ended, by how. Route other: routes past the 64th.",
     "route,outcome"},
    {"headgate_refusals_total", Kind::counter, "Answers that the gateway made itself, by the code of their error body.",
     "code"},
    {"headgate_requests_in_progress", Kind::gauge, "Requests whose head has come and whose answer has not ended.", ""},
    {"headgate_attempts_total", Kind::counter, "Attempts started at a backend's address.", "backend"},
    {"headgate_attempt_failures_total", Kind::counter,
     "Attempts that ended badly: every class but the caller's own fault.", "backend"},
    {"headgate_backend_in_flight", Kind::gauge, "Attempts running at a backend's address.", "backend"},
    {"headgate_backend_in_flight_limit", Kind::gauge, "Most attempts that may run at a backend's address at once.",
     "backend"},
    {"headgate_backend_health", Kind::gauge, "1 while the backend's address is in rotation, 0 while it is out.",
     "backend"},
    {"headgate_backend_drained", Kind::gauge, "1 while the backend's address is drained by hand.", "backend"},
    {"headgate_backend_connections", Kind::gauge,
     "Open connections to a backend's address, idle ones too; probes apart.", "backend"},
    {"headgate_backend_connections_max", Kind::gauge,
     "Most connections to a backend's address that may be open at once; 0: no cap.", "backend"},
    {"headgate_connection_waits_total", Kind::counter,
     "Attempts that waited because the backend's connections were at their cap.", "backend"},
    {"headgate_connections_lent_total", Kind::counter,
     "Idle connections to a backend at its cap that went over to an attempt of another worker.", "backend"},
    {"headgate_health_changes_total", Kind::counter, "Times a backend's address went into or out of rotation.",
     "backend"},
    {"headgate_probe_failures_total", Kind::counter, "Health probes missed.", "backend"},
    {"headgate_ejections_total", Kind::counter, "Times a backend's address was ejected for failures in a row.",
     "backend"},
    {"headgate_queued", Kind::gauge, "Requests waiting for a backend of the pool.", "pool"},
    {"headgate_queued_bytes", Kind::gauge, "Bytes of the bodies of the requests waiting for the pool.", "pool"},
    {"headgate_queued_by_class", Kind::gauge, "Of the requests waiting, those that were never refused or tried.",
     "pool,class"},
    {"headgate_retry_credit", Kind::gauge, "Retries that the route's budget would pay for now.", "route"},
    {"headgate_caller_connections", Kind::gauge, "Open connections from callers.", ""},
    {"headgate_connections_refused_total", Kind::counter,
     "Connections closed unread because as many were open as listen allows, in all or from one address.", "limit"},
    {"headgate_connections_closed_total", Kind::counter,
     "Callers' connections closed at a limit of time: idle, not reading their answer, writing on what was refused.",
     "reason"},
    {"headgate_accept_pauses_total", Kind::counter,
     "Times that accepting paused because descriptors or memory had run out.", ""},
    {"headgate_tls_handshake_failures_total", Kind::counter, "TLS handshakes that failed.", "peer,reason"},
    {"headgate_upstream_connections", Kind::gauge, "Connections to backends that attempts are using.", ""},
    {"headgate_tokens_total", Kind::counter, "Tokens of ended requests. Cached ones are counted under input as well.",
     "route,direction"},
    {"headgate_usage_estimated_total", Kind::counter, "Requests whose tokens the gateway had to count itself.", ""},
    {"headgate_stream_events_total", Kind::counter, "Server-sent events relayed.", ""},
    {"headgate_sse_parse_errors_total", Kind::counter, "Events of a backend that were neither JSON nor [DONE].", ""},
    {"headgate_cancelled_by_caller_total", Kind::counter, "Requests whose caller left before the end.", ""},
    {"headgate_streams_cut_total", Kind::counter, "Streams that failed after content had been relayed.", ""},
    {"headgate_ttft_seconds", Kind::histogram, "From a request's first byte to its first content token.", "route"},
    {"headgate_queue_wait_seconds", Kind::histogram, "Time a request waited for a backend.", "route"},
    {"headgate_request_seconds", Kind::histogram, "From a request's first byte to the end of its answer.", "route"},
    {"headgate_dispatch_lock_held_seconds", Kind::histogram, "Time the Dispatcher's lock was held, one section in 16.",
     ""},
    {"headgate_body_bytes_held", Kind::gauge, "Memory held by request bodies.", ""},
    {"headgate_certificate_expiry_timestamp_seconds", Kind::gauge,
     "Unix time at which the certificate shown to callers expires; 0: no TLS.", ""},
    {"headgate_access_log_dropped_total", Kind::counter, "Access log lines dropped because the writer was behind.", ""},
    {"headgate_event_log_lost_total", Kind::counter, "Event log records lost because the writer was behind.", ""},
    {"headgate_event_log_open", Kind::gauge, "1 while an event log is written; 0: none, or it failed.", ""},
    {"headgate_reloads_total", Kind::counter, "Reloads of the configuration, by result.", "result"},
    {"headgate_config_version", Kind::gauge, "Version of the configuration in use; 1 at start.", ""},
    {"headgate_draining", Kind::gauge, "1 while the gateway takes no new requests and waits to exit.", ""},
    {"headgate_process_start_time_seconds", Kind::gauge, "When the process started, Unix time.", ""},
    {"headgate_build_info", Kind::gauge, "Always 1; the label says what is running.", "version"},
}};

std::string_view type_of(Kind kind) {
  switch (kind) {
    case Kind::counter:
      return "counter";
    case Kind::gauge:
      return "gauge";
    default:
      return "histogram";
  }
}

struct Page : MetricPage {
  void family(Metric metric) {
    const Family& about = families[static_cast<std::size_t>(metric)];
    MetricPage::family(about.name, about.help, type_of(about.kind));
  }
};

// Places of `routes` that are shown: those with a name, "other" and "" (no route) once something was counted there.
template <class Use>
void each_route(const MetricsView& view, Use use) {
  const auto& routes = view.counters.routes;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    std::string_view name = view.names.route(policies::RouteId(static_cast<std::uint32_t>(i)));
    if (i >= ShardCounters::routes_shown) {
      const auto counted = [](std::uint64_t sum, const Count& one) { return sum + one.get(); };
      const auto& requests = routes[i].requests;
      if (std::accumulate(requests.begin(), requests.end(), std::uint64_t{0}, counted) == 0) continue;
      name = i == ShardCounters::other_route ? "other" : "";
    } else if (name.empty()) {
      continue;
    }
    use(name, routes[i]);
  }
}

template <class Value>
void each_backend(Page& page, const MetricsView& view, Metric metric, Value value) {
  page.family(metric);
  for (const policies::EndpointState& endpoint : view.snapshot.endpoints) {
    const std::string_view name = view.names.endpoint(endpoint.id);
    if (!name.empty()) page.sample(value(endpoint), {{"backend", name}});
  }
}

using Figures = backends::ConnectionCap::Figures;

template <class Value>
void each_connection_figure(Page& page, const MetricsView& view, Metric metric, Value value) {
  each_backend(page, view, metric, [&](const policies::EndpointState& endpoint) {
    const std::size_t at = policies::index(endpoint.id);
    return value(at < view.connections.size() ? view.connections[at]->figures() : Figures());
  });
}

template <class Value>
void each_pool(Page& page, const MetricsView& view, Metric metric, Value value) {
  page.family(metric);
  for (const policies::PoolState& pool : view.snapshot.pools) {
    const std::string_view name = view.names.pool(pool.id);
    if (!name.empty()) page.sample(value(pool), {{"pool", name}});
  }
}

void one(Page& page, Metric metric, std::uint64_t value) {
  page.family(metric);
  page.sample(value);
}

void each_tls_failure(Page& page, std::string_view peer, std::span<const Count, backends::tls_failures> counts) {
  for (std::size_t i = 1; i < counts.size(); ++i) {
    page.sample(counts[i].get(), {{"peer", peer}, {"reason", backends::name_of(static_cast<backends::TlsFailure>(i))}});
  }
}

void route_histogram(Page& page, const TimeHistogram& times, std::string_view route) {
  page.histogram(times.buckets, TimeHistogram::bounds_us, 1e6, times.sum_us.get(), {{"route", route}});
}

void render_requests(Page& page, const MetricsView& view) {
  page.family(Metric::requests);
  each_route(view, [&](std::string_view route, const RouteCounters& counters) {
    for (std::size_t i = 0; i < endings; ++i) {
      page.sample(counters.requests[i].get(), {{"route", route}, {"outcome", name_of(static_cast<Ending>(i))}});
    }
  });
  page.family(Metric::refusals);
  for (std::size_t i = 0; i < refusals; ++i) {
    const std::string_view code = row_of(static_cast<Refusal>(i)).code;
    std::uint64_t sum = 0;  // several rows may share a code: the first of them shows their sum
    bool first = true;
    for (std::size_t k = 0; k < refusals; ++k) {
      if (row_of(static_cast<Refusal>(k)).code != code) continue;
      first = first && k >= i;
      sum += view.counters.refusals_by_code[k].get();
    }
    if (first) page.sample(sum, {{"code", code}});
  }
  one(page, Metric::requests_in_progress, view.counters.requests_in_progress.get());
}

void render_backends(Page& page, const MetricsView& view) {
  using State = policies::EndpointState;
  each_backend(page, view, Metric::attempts, [](const State& e) { return e.attempts_total; });
  each_backend(page, view, Metric::attempt_failures, [](const State& e) { return e.failures_total; });
  each_backend(page, view, Metric::backend_in_flight, [](const State& e) { return e.in_flight; });
  each_backend(page, view, Metric::backend_in_flight_limit, [](const State& e) { return e.max_in_flight; });
  each_backend(page, view, Metric::backend_health,
               [](const State& e) { return e.planned && e.health == policies::HealthState::up ? 1u : 0u; });
  each_backend(page, view, Metric::backend_drained, [](const State& e) { return e.drained ? 1u : 0u; });
  each_connection_figure(page, view, Metric::backend_connections, [](const Figures& f) { return f.open; });
  each_connection_figure(page, view, Metric::backend_connections_max, [](const Figures& f) { return f.most; });
  each_connection_figure(page, view, Metric::connection_waits, [](const Figures& f) { return f.waits_total; });
  each_connection_figure(page, view, Metric::connections_lent, [](const Figures& f) { return f.lent_total; });
  each_backend(page, view, Metric::health_changes, [](const State& e) { return e.health_changes_total; });
  each_backend(page, view, Metric::probe_failures, [](const State& e) { return e.probe_failures_total; });
  each_backend(page, view, Metric::ejections, [](const State& e) { return e.ejections_total; });
  each_pool(page, view, Metric::queued, [](const policies::PoolState& p) { return p.queued; });
  each_pool(page, view, Metric::queued_bytes, [](const policies::PoolState& p) { return p.queued_bytes; });
  page.family(Metric::queued_by_class);
  for (const policies::PoolState& pool : view.snapshot.pools) {
    const std::string_view name = view.names.pool(pool.id);
    for (std::size_t c = 0; c < policies::classes_n && !name.empty(); ++c)
      page.sample(pool.queued_by_class[c], {{"pool", name}, {"class", policies::class_names[c]}});
  }
  page.family(Metric::retry_credit);
  for (const policies::RouteState& route : view.snapshot.routes) {
    const std::string_view name = view.names.route(route.id);
    if (!name.empty()) page.sample_double(route.retry_credit, {{"route", name}});
  }
}

void render_traffic(Page& page, const MetricsView& view) {
  const ShardCounters& counters = view.counters;
  one(page, Metric::caller_connections, counters.caller_connections.get());
  page.family(Metric::connections_refused);
  page.sample(counters.connections_refused.get(), {{"limit", "connections_max"}});
  page.sample(counters.connections_refused_by_address.get(), {{"limit", "connections_per_address"}});
  page.family(Metric::connections_closed);
  for (std::size_t i = 0; i < closed_by_us; ++i)
    page.sample(counters.connections_closed[i].get(), {{"reason", name_of(static_cast<ClosedByUs>(i))}});
  one(page, Metric::accept_pauses, counters.accept_pauses.get());
  page.family(Metric::tls_failures);
  each_tls_failure(page, "caller", counters.tls_failures);
  each_tls_failure(page, "backend", counters.upstream_tls_failures);
  one(page, Metric::upstream_connections, counters.upstream_connections.get());
  page.family(Metric::tokens);
  each_route(view, [&](std::string_view route, const RouteCounters& of) {
    page.sample(of.input_tokens.get(), {{"route", route}, {"direction", "input"}});
    page.sample(of.cached_tokens.get(), {{"route", route}, {"direction", "cached"}});
    page.sample(of.output_tokens.get(), {{"route", route}, {"direction", "output"}});
  });
  one(page, Metric::usage_estimated, counters.usage_estimated.get());
  one(page, Metric::stream_events, counters.stream_events.get());
  one(page, Metric::sse_parse_errors, counters.sse_parse_errors.get());
  one(page, Metric::cancelled_by_caller, counters.cancelled_by_caller.get());
  one(page, Metric::streams_cut, counters.streams_cut.get());
  page.family(Metric::ttft);
  each_route(view, [&](std::string_view route, const RouteCounters& of) { route_histogram(page, of.ttft, route); });
  page.family(Metric::queue_wait);
  each_route(view,
             [&](std::string_view route, const RouteCounters& of) { route_histogram(page, of.queue_wait, route); });
  page.family(Metric::request_time);
  each_route(view, [&](std::string_view route, const RouteCounters& of) { route_histogram(page, of.total, route); });
}

void render_process(Page& page, const MetricsView& view) {
  page.family(Metric::lock_held);
  page.histogram(view.lock_held.buckets, HoldTimes::bounds_ns, 1e9, view.lock_held.sum_ns.get(), {});
  one(page, Metric::body_bytes_held, view.body_bytes_held);
  one(page, Metric::certificate_expiry, view.certificate_expires_unix_s);
  one(page, Metric::access_log_dropped, view.access_log_dropped);
  one(page, Metric::event_log_lost, view.event_log_lost);
  one(page, Metric::event_log_open, view.event_log_open ? 1 : 0);
  page.family(Metric::reloads);
  page.sample(view.reloads_ok, {{"result", "ok"}});
  page.sample(view.reloads_failed, {{"result", "failed"}});
  one(page, Metric::config_version, view.config_version);
  one(page, Metric::draining, view.draining ? 1 : 0);
  page.family(Metric::process_start_time);
  page.sample_double(view.process_start_time_s);
  page.family(Metric::build_info);
  page.sample(1, {{"version", view.build_version}});
}

}  // namespace

void TimeHistogram::observe(Nanos time) {
  const std::int64_t us =
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  const auto at = std::lower_bound(bounds_us.begin(), bounds_us.end(), us) - bounds_us.begin();  // le: bound included
  buckets[static_cast<std::size_t>(at)].add();
  sum_us.add(static_cast<std::uint64_t>(us));
}

void TimeHistogram::add(const TimeHistogram& other) {
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i].add(other.buckets[i].get());
  sum_us.add(other.sum_us.get());
}

void ShardCounters::add(const ShardCounters& other) {
  for (std::size_t r = 0; r < routes.size(); ++r) {
    RouteCounters& to = routes[r];
    const RouteCounters& from = other.routes[r];
    for (std::size_t i = 0; i < endings; ++i) to.requests[i].add(from.requests[i].get());
    to.input_tokens.add(from.input_tokens.get());
    to.cached_tokens.add(from.cached_tokens.get());
    to.output_tokens.add(from.output_tokens.get());
    to.ttft.add(from.ttft);
    to.queue_wait.add(from.queue_wait);
    to.total.add(from.total);
  }
  for (std::size_t i = 0; i < refusals; ++i) refusals_by_code[i].add(other.refusals_by_code[i].get());
  requests_in_progress.add(other.requests_in_progress.get());
  caller_connections.add(other.caller_connections.get());
  connections_refused.add(other.connections_refused.get());
  connections_refused_by_address.add(other.connections_refused_by_address.get());
  for (std::size_t i = 0; i < closed_by_us; ++i) connections_closed[i].add(other.connections_closed[i].get());
  accept_pauses.add(other.accept_pauses.get());
  for (std::size_t i = 0; i < backends::tls_failures; ++i) {
    tls_failures[i].add(other.tls_failures[i].get());
    upstream_tls_failures[i].add(other.upstream_tls_failures[i].get());
  }
  upstream_connections.add(other.upstream_connections.get());
  stream_events.add(other.stream_events.get());
  sse_parse_errors.add(other.sse_parse_errors.get());
  cancelled_by_caller.add(other.cancelled_by_caller.get());
  streams_cut.add(other.streams_cut.get());
  usage_estimated.add(other.usage_estimated.get());
}

std::span<const Family> metric_list() { return families; }

std::string render_metrics(const MetricsView& view) {
  Page page;
  page.text.reserve(16 << 10);
  render_requests(page, view);
  render_backends(page, view);
  render_traffic(page, view);
  render_process(page, view);
  return std::move(page.text);
}

}  // namespace headgate::gateway
