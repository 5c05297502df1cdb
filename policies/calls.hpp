// Everything that can happen to a request or a backend, as the host tells it to the Dispatcher.
#pragma once

#include <cstdint>

#include "policies/base/time.hpp"
#include "policies/ids.hpp"
#include "policies/plan.hpp"

namespace headgate::policies {

inline constexpr double unlimited_usd = 1e300;

struct Arrival {
  Owner owner{};
  RouteId route{};
  std::uint64_t body_bytes = 0;
  TenantId tenant{};
  Class klass = Class::interactive;     // asked for; never better than the tenant's
  std::uint32_t prompt_tokens = 0;      // estimate
  std::uint32_t max_output_tokens = 0;  // that the caller allows, over all of its choices; 0: unsaid
  std::uint32_t choices = 1;            // answers wanted
  bool stream = false;
  bool repeat = false;      // an SDK's own retry (x-stainless-retry-count >= 1)
  Time received{};          // first byte of the request: totals and deadlines count from here
  Time deadline = never;    // what the caller asked for; the route's total bounds it too
  Time content_by = never;  // likewise of its first content
  double max_cost_usd = unlimited_usd;
  double min_quality = 0;
  Nanos head_within =
      Nanos::max();  // x-stainless-timeout of a stream: each attempt's first byte within this from `received`
  Nanos idle_within = Nanos::max();  // x-stainless-read-timeout of a stream
};

// How an attempt ended. Whose fault that is: outcome.hpp.
enum class End : std::uint8_t {
  ok,              // complete, or a caller's 4xx relayed as received
  connect,         // no connection: refused, unreachable, late
  unsent,          // connected; the request was not written whole
  sent_no_answer,  // written whole; the connection ended before a whole head
  status,          // an answer with a status that is not the caller's fault; `status` says which
  in_band_error,   // 200, then an error event or object before any content
  malformed,       // not HTTP, framing broken, head too large
  truncated,       // ended before its end: length short, no final chunk, no finish reason and no [DONE]
  first_byte_late,
  first_token_late,
  stalled,      // silence longer than idle after the first byte
  out_of_time,  // the request's own deadline or total passed
  cancelled,    // the caller left or the host stops
  no_socket,    // the host had no descriptor or memory for a connection: says nothing about the endpoint
};

struct Outcome {
  End end = End::ok;
  std::uint16_t status = 0;
  Nanos retry_after{-1};    // as advised by the backend; negative: no advice
  bool overloaded = false;  // an in-band error that says overloaded or rate limited
  std::uint32_t input_tokens = 0;
  std::uint32_t output_tokens = 0;
  bool estimated = false;  // the tokens are counted by the host, not reported
};

// Gaps between the contents of streams at one endpoint that have ended since the last report, without those of streams
// that were not read from meanwhile.
struct Progress {
  EndpointId endpoint{};
  std::uint32_t gaps = 0;
  Nanos gap_sum{0};
};

struct ProbeResult {
  bool ok = false;
};

}  // namespace headgate::policies
