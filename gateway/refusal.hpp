// Every answer that the gateway makes itself instead of a backend; HTTP.md shows the table to callers.
//
//   RefusalAnswer no = refusal_for(answer, last_outcome);   // or {.refusal = Refusal::body_too_large, .value = .., ..}
//   no.request_id = id;
//   append_refusal_head(out, no);                           // then lines of one's own
//   append_refusal_body(out, no);                           // and the HTTP/1.1 answer is complete
//
// Retry-After is whole seconds, rounded up, at least 1; retry-after-ms is beside it. Over 60 s both say the true value
// and x-should-retry is false. Jitter is the business of whoever made the advice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/ending.hpp"
#include "policies/answer_codes.hpp"
#include "policies/calls.hpp"
#include "policies/orders.hpp"

namespace headgate::gateway {

enum class Refusal : std::uint8_t {  // detail, param, value and limit: what the message says of it
  invalid_api_key,
  model_not_allowed,        // detail: model
  model_not_found,          // detail: model
  invalid_body,             // detail: the problem; param: the field
  invalid_header,           // detail: the problem; param: the header
  context_length_exceeded,  // value, limit: tokens
  unsupported_encoding,     // detail: the content-encoding
  body_too_large,           // value (at least), limit: bytes
  headers_too_large,        // value (at least), limit: bytes
  method_not_allowed,       // detail: method; allow
  not_found,                // detail: path
  memory,                   // value: bytes wanted; limit: bytes free
  bodies_per_key,           // the same of this key's part
  queue_full,               // value, limit: requests or bytes
  upstream_socket,          // the gateway has no descriptor left for a connection to a backend
  deadline_unmeetable,      // value, limit: ms
  deadline_exceeded,        // value, limit: ms
  no_healthy_backend,
  requests_per_minute,  // value, limit: requests
  tokens_per_minute,    // value: tokens of this request; limit: left now
  concurrency,          // value, limit: requests
  request_too_large,    // value, limit: tokens
  cost_unmeetable,      // value, limit: millionths of a USD
  quality_unmeetable,
  upstream_failed,      // the last attempt ended without an answer
  upstream_in_band,     // 200 with an error in it: 502
  upstream_overloaded,  // the same, and it says overloaded or rate limited: 503
  upstream_timeout,
  upstream_auth,
  upstream_status,  // an error status whose body is not JSON, or names the backend; status: as received
  stream_cut,       // only for append_error_event; detail: why
  tls_required,     // plain HTTP where TLS is spoken
  bad_request,      // the wire rules; detail: what is wrong
  version_not_supported,
  head_timeout,  // value, limit: ms
  body_timeout,  // detail: silent or under way; value, limit: ms
  shutting_down,
  internal,
};
inline constexpr std::size_t refusals = static_cast<std::size_t>(Refusal::internal) + 1;

using policies::ShouldRetry;  // first_time: by RefusalAnswer::repeat_ok

struct RefusalRow {
  Refusal refusal{};
  std::uint16_t status = 0;
  std::string_view type, code;
  ShouldRetry should_retry = ShouldRetry::no;
  bool refuses = true;  // x-headgate-refusal says so, unless a backend had a part in it all the same
  Ending ending = Ending::rejected;
  std::string_view message;  // as JSON text; %d, %v and %l stand for detail, value and limit
};
const RefusalRow& row_of(Refusal refusal);

// Views must outlive the call they are passed to.
struct RefusalAnswer {
  Refusal refusal = Refusal::internal;
  std::string_view detail{};
  std::string_view param{};  // empty: null
  std::int64_t value = 0, limit = 0;
  Nanos retry_after{0};           // 0: no advice
  bool repeat_ok = false;         // for ShouldRetry::first_time
  std::string_view request_id{};  // empty: no x-request-id
  std::string_view allow{};       // of method_not_allowed: "GET, HEAD"
  std::uint16_t status = 0;       // 0: the table's
  bool without_body = false;      // answer to HEAD: Content-Length stays
  bool backend_had_part = false;  // then x-headgate-refusal would not be true
  std::string_view more_head{};   // whole lines with CR LF, appended as they are
};

// Not for Code::as_received and Code::stream_cut of a stream whose head is out (use append_error_event).
RefusalAnswer refusal_for(const policies::Answer& answer, const policies::Outcome& last = {});

void append_refusal_head(std::string& out, const RefusalAnswer& answer);
void append_refusal_body(std::string& out, const RefusalAnswer& answer);  // Content-Length, empty line, error body
void append_error_body(std::string& out, const RefusalAnswer& answer);    // {"error":{...}}
void append_error_event(std::string& out, const RefusalAnswer& answer);   // data: {"error":{...}} and an empty line

std::string_view reason_phrase(std::uint16_t status);  // "" for one that nobody uses

}  // namespace headgate::gateway
