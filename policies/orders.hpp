// Everything the Dispatcher can ask of its host. Orders are values; the host posts each to the owner it names.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "policies/base/time.hpp"
#include "policies/ids.hpp"

namespace headgate::policies {

enum class Why : std::uint8_t { first, queued, retry, evacuation };

// Try this backend now. Answered by exactly one ended().
struct Start {
  AttemptId attempt;
  BackendId backend{};
  EndpointId endpoint{};
  Why why = Why::first;
  Time connect_by{}, first_byte_by{}, first_token_by{}, end_by{};
  Nanos idle{};
};

// Why the gateway itself answers. HTTP.md "Answers that Headgate makes itself" has the status of each.
enum class Code : std::uint8_t {
  model_not_found,      // the route and its pools left the plan while the request was on its way
  no_healthy_backend,   // every backend down, ejected or cooling; retry_after: the soonest return
  queue_full,           // value and limit: requests or bytes waiting in the last pool tried
  deadline_unmeetable,  // value: predicted wait, limit: time left (ms)
  deadline_exceeded,    // passed while waiting; value: waited ms, limit: allowed ms
  as_received,          // the last attempt's own answer goes to the caller
  upstream_failed,      // the last attempt ended without an answer, or with an in-band error
  upstream_timeout,
  upstream_auth,  // our own credentials were refused by every pool tried
  stream_cut,     // failed after commit: one error event, then close
  no_socket,      // the host itself had no room for a connection to a backend
  // The tenant's own limits; value: what was asked for (of concurrency: what it has), limit: what there is
  requests_per_minute,
  tokens_per_minute,
  concurrency,
  request_too_large_for_limit,  // more tokens than its limit per minute: it never fits
  cost_budget_unmeetable,  // value: millionths of a USD in the cheapest pool that is good enough, -1: none is; limit
};

// The end of a request that no backend answers. At most one a request, and none after a successful attempt.
struct Answer {
  Code code{};
  Nanos retry_after{0};    // 0: no advice to give
  bool repeat_ok = false;  // x-should-retry
  std::int64_t value = 0, limit = 0;
};

// What is left of a tenant's limits, for x-ratelimit headers.
struct RateState {
  struct Rate {
    std::uint64_t limit = 0, remaining = 0;  // limit 0: there is none
    Nanos full_in{0};                        // until all of it is there again
  };
  Rate requests, tokens;
};

struct Order {
  Owner to;
  RequestId request = RequestId::none;
  std::variant<Start, Answer> what;
};

using Orders = std::vector<Order>;

}  // namespace headgate::policies
