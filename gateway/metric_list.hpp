// All metrics of the gateway: one list (name, type, help, labels), the counters that shards keep, and their text in the
// Prometheus format 0.0.4.
//
// Each shard owns a ShardCounters and is its only writer; a scrape reads it at any moment, so a counter is an atomic
// that is loaded and stored relaxed (plain moves, no locked instruction). Sums over shards may be torn by one request
// against each other, never against themselves. Everything about backends, pools and retry credit comes from the
// Dispatcher's snapshot. Labels are bounded: route ids from routes_shown on share the route label "other".
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backends/connection_cap.hpp"
#include "backends/io/tls_failure.hpp"
#include "gateway/closed_by_us.hpp"
#include "gateway/count.hpp"
#include "gateway/ending.hpp"
#include "gateway/hold_times.hpp"
#include "gateway/name_book.hpp"
#include "gateway/refusal.hpp"
#include "policies/dispatcher.hpp"

namespace headgate::gateway {

class TimeHistogram {
 public:
  static constexpr std::array<std::int64_t, 17> bounds_us{
      1'000,     2'500,     5'000,     10'000,     25'000,     50'000,     100'000,     250'000,    500'000,
      1'000'000, 2'500'000, 5'000'000, 10'000'000, 30'000'000, 60'000'000, 120'000'000, 300'000'000};

  void observe(Nanos time);  // below zero counts as zero
  void add(const TimeHistogram& other);

  std::array<Count, bounds_us.size() + 1> buckets;  // not cumulative; the last one is above every bound
  Count sum_us;
};

struct RouteCounters {
  std::array<Count, endings> requests;               // by Ending
  Count input_tokens, cached_tokens, output_tokens;  // cached: part of input
  TimeHistogram ttft, queue_wait, total;
};

struct ShardCounters {
  static constexpr std::size_t routes_shown = 64;
  static constexpr std::size_t other_route = routes_shown, no_route = routes_shown + 1;

  ShardCounters() = default;
  ShardCounters(const ShardCounters&) = delete;
  ShardCounters& operator=(const ShardCounters&) = delete;

  RouteCounters& route(policies::RouteId id) { return routes[std::min(policies::index(id), other_route)]; }
  RouteCounters& without_route() { return routes[no_route]; }
  void refused(Refusal refusal) { refusals_by_code[static_cast<std::size_t>(refusal)].add(); }
  void closed(ClosedByUs why) { connections_closed[static_cast<std::size_t>(why)].add(); }
  void add(const ShardCounters& other);

  std::array<RouteCounters, routes_shown + 2> routes;
  std::array<Count, refusals> refusals_by_code;    // every answer or event made of a RefusalAnswer
  Count requests_in_progress;                      // gauge: head complete, last byte not yet sent
  Count caller_connections, upstream_connections;  // gauges
  Count connections_refused, connections_refused_by_address, accept_pauses;
  std::array<Count, closed_by_us> connections_closed;                             // by ClosedByUs
  std::array<Count, backends::tls_failures> tls_failures, upstream_tls_failures;  // by TlsFailure
  Count stream_events, sse_parse_errors, cancelled_by_caller, streams_cut, usage_estimated;
};

struct MetricsView {
  const policies::Snapshot& snapshot;
  const ShardCounters& counters;  // summed over the shards
  const NameBook& names;
  std::span<const std::shared_ptr<backends::ConnectionCap>> connections;  // by endpoint id
  const HoldTimes& lock_held;                                             // of the Dispatcher
  std::uint64_t config_version = 0;
  std::uint64_t reloads_ok = 0, reloads_failed = 0;
  std::uint64_t access_log_dropped = 0;  // lines
  std::uint64_t event_log_lost = 0;      // records
  bool event_log_open = false;
  std::uint64_t body_bytes_held = 0;
  std::uint64_t certificate_expires_unix_s = 0;  // 0: no TLS towards callers
  bool draining = false;
  double process_start_time_s = 0;  // Unix time
  std::string_view build_version;
};

enum class Kind : std::uint8_t { counter, gauge, histogram };
struct Family {
  std::string_view name;
  Kind kind{};
  std::string_view help;
  std::string_view labels;  // "route,outcome"
};
std::span<const Family> metric_list();

std::string render_metrics(const MetricsView& view);

}  // namespace headgate::gateway
