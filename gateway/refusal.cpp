#include "gateway/refusal.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "gateway/json_text.hpp"

namespace headgate::gateway {
namespace {

using R = Refusal;
using S = ShouldRetry;
using E = Ending;
using policies::Code;

constexpr std::string_view invalid = "invalid_request_error", overloaded = "overloaded_error",
                           rate_limit = "rate_limit_error", budget = "budget_error", timeout = "timeout_error",
                           upstream = "upstream_error";

// What the Dispatcher decides is in its own table.
constexpr RefusalRow decided(R refusal, policies::Code code, std::string_view type, E ending,
                             std::string_view message) {
  const policies::AnswerCode& row = policies::answer_code(code);
  return {refusal, row.status, type, row.name, row.should_retry, row.refuses, ending, message};
}

constexpr std::array<RefusalRow, refusals> table{{
    {R::invalid_api_key, 401, invalid, "invalid_api_key", S::no, true, E::rejected,
     "No valid API key: send Authorization: Bearer KEY, or x-api-key"},
    {R::model_not_allowed, 403, invalid, "model_not_allowed", S::no, true, E::rejected,
     "This key may not use the model \\\"%d\\\""},
    decided(R::model_not_found, Code::model_not_found, invalid, E::rejected, "There is no model \\\"%d\\\""),
    {R::invalid_body, 400, invalid, "invalid_body", S::no, true, E::rejected, "The request body is invalid: %d"},
    {R::invalid_header, 400, invalid, "invalid_header", S::no, true, E::rejected, "A header is invalid: %d"},
    {R::context_length_exceeded, 400, invalid, "context_length_exceeded", S::no, true, E::rejected,
     "The prompt is at least %v tokens, over the model's context window of %l"},
    {R::unsupported_encoding, 415, invalid, "unsupported_encoding", S::no, true, E::rejected,
     "The request body is compressed (content-encoding: %d): send it as it is"},
    {R::body_too_large, 413, invalid, "body_too_large", S::no, true, E::rejected,
     "The request body is at least %v bytes, over the limit of %l"},
    {R::headers_too_large, 431, invalid, "headers_too_large", S::no, true, E::rejected,
     "The request head is at least %v bytes, over the limit of %l"},
    {R::method_not_allowed, 405, invalid, "method_not_allowed", S::no, true, E::rejected,
     "The method %d is not allowed here"},
    {R::not_found, 404, invalid, "not_found", S::no, true, E::rejected, "There is nothing at \\\"%d\\\""},
    {R::memory, 503, overloaded, "memory", S::first_time, true, E::refused,
     "The request body of %v bytes is over the %l bytes of body memory that are free"},
    {R::bodies_per_key, 429, rate_limit, "bodies_per_key", S::first_time, true, E::refused,
     "The request body of %v bytes is over the %l bytes that this key may still hold"},
    decided(R::queue_full, Code::queue_full, overloaded, E::refused,
            "The queue of this model is full: %v waiting, limit %l"),
    decided(R::upstream_socket, Code::no_socket, overloaded, E::refused,
            "The gateway has no file descriptor or memory left for a connection to a backend"),
    decided(R::deadline_unmeetable, Code::deadline_unmeetable, overloaded, E::refused,
            "The predicted wait of %v ms is over the %l ms that are left"),
    decided(R::deadline_exceeded, Code::deadline_exceeded, timeout, E::refused,
            "The request waited %v ms for a backend, over its limit of %l ms"),
    decided(R::no_healthy_backend, Code::no_healthy_backend, overloaded, E::refused,
            "Every backend of this model is down, cooling or drained"),
    decided(R::requests_per_minute, Code::requests_per_minute, rate_limit, E::refused,
            "The limit of %l requests per minute is used up"),
    decided(R::tokens_per_minute, Code::tokens_per_minute, rate_limit, E::refused,
            "The request may take %v tokens, of the limit per minute %l are left"),
    decided(R::concurrency, Code::concurrency, rate_limit, E::refused,
            "%v requests wait or run already, the limit is %l"),
    decided(R::request_too_large, Code::request_too_large_for_limit, rate_limit, E::rejected,
            "The request may take %v tokens, over the limit of %l per minute: it never fits"),
    decided(
        R::cost_unmeetable, Code::cost_budget_unmeetable, budget, E::rejected,
        "The request may cost %v millionths of a USD in the cheapest pool that is good enough, over its limit of %l"),
    decided(R::quality_unmeetable, Code::cost_budget_unmeetable, budget, E::rejected,
            "No pool of this model has the quality that is asked for"),
    decided(R::upstream_failed, Code::upstream_failed, upstream, E::failed,
            "The backend failed before it had answered"),
    {R::upstream_in_band, 502, upstream, "upstream_failed", S::unsaid, false, E::failed,
     "The backend answered with an error"},
    {R::upstream_overloaded, 503, upstream, "upstream_failed", S::unsaid, false, E::failed,
     "The backend says that it is overloaded"},
    decided(R::upstream_timeout, Code::upstream_timeout, upstream, E::failed,
            "The backend did not answer in time: %v ms passed, the limit for %d is %l ms"),
    decided(R::upstream_auth, Code::upstream_auth, upstream, E::failed,
            "The backend refused the gateway's credentials"),
    decided(R::upstream_status, Code::as_received, upstream, E::failed, "The backend answered with an error status"),
    decided(R::stream_cut, Code::stream_cut, upstream, E::cut, "The stream ended before its end: %d"),
    {R::tls_required, 400, invalid, "tls_required", S::no, true, E::rejected, "This port speaks TLS: use https://"},
    {R::bad_request, 400, invalid, "bad_request", S::no, true, E::rejected, "Not a valid HTTP request: %d"},
    {R::version_not_supported, 505, invalid, "version_not_supported", S::no, true, E::rejected,
     "Only HTTP/1.1 and HTTP/1.0 are spoken here"},
    {R::head_timeout, 408, timeout, "head_timeout", S::no, true, E::rejected,
     "The request head was not complete after %v ms, the limit is %l ms"},
    {R::body_timeout, 408, timeout, "body_timeout", S::no, true, E::rejected,
     "The request body came too slowly: %d for %v ms, the limit is %l ms"},
    {R::shutting_down, 503, overloaded, "shutting_down", S::first_time, true, E::refused,
     "The gateway is shutting down"},
    {R::internal, 500, "server_error", "internal", S::unsaid, false, E::failed, "The gateway failed"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (static_cast<std::size_t>(table[i].refusal) != i) return false;
  }
  return true;
}
static_assert(in_order(), "a row of the table is looked up by its place");

void append_status_lines(std::string& out, std::uint16_t status) {
  out += "HTTP/1.1 ";
  append_number(out, status);
  out.append(" ").append(reason_phrase(status)).append("\r\nContent-Type: application/json\r\n");
}

// What is the same in every answer of a row: put together once.
struct RowText {
  std::string status_lines, refusal_line, body_end;

  explicit RowText(const RefusalRow& row) {
    append_status_lines(status_lines, row.status);
    if (row.refuses) refusal_line.append("x-headgate-refusal: ").append(row.code).append("\r\n");
    body_end.append(",\"code\":\"").append(row.code).append("\"}}");
  }
};

const RowText& text_of(Refusal refusal) {
  static const std::vector<RowText> texts(table.begin(), table.end());
  return texts[static_cast<std::size_t>(refusal)];
}

std::int64_t round_up(Nanos time, Nanos unit) { return (time.count() + unit.count() - 1) / unit.count(); }

// Of what a caller sent as much as helps him to find it: whole characters.
void append_shown(std::string& out, std::string_view text) {
  constexpr std::size_t shown_max = 200, tails_max = 3;
  std::size_t cut = std::min(text.size(), shown_max);
  if (cut == text.size()) {
    append_escaped(out, text);
    return;
  }
  while (cut > shown_max - tails_max && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  append_escaped(out, text.substr(0, cut));
  out += "...";
}

// The rows' messages are written as JSON text: only what a request brought with it is escaped.
void append_message(std::string& out, const RefusalRow& row, const RefusalAnswer& answer) {
  out += '"';
  std::string_view rest = row.message;
  for (std::size_t mark = rest.find('%'); mark != rest.npos; mark = rest.find('%')) {
    out.append(rest.substr(0, mark));
    switch (rest[mark + 1]) {
      case 'd':
        append_shown(out, answer.detail);
        break;
      case 'v':
        append_number(out, answer.value);
        break;
      default:
        append_number(out, answer.limit);
        break;
    }
    rest.remove_prefix(mark + 2);
  }
  out.append(rest).append("\"");
}

void append_line(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

void append_advice(std::string& out, const RefusalRow& row, const RefusalAnswer& answer) {
  const bool advised = answer.retry_after > Nanos::zero();
  const std::int64_t seconds = advised ? round_up(answer.retry_after, std::chrono::seconds(1)) : 0;
  if (advised) {
    out += "Retry-After: ";
    append_number(out, seconds);
    out += "\r\nretry-after-ms: ";
    append_number(out, round_up(answer.retry_after, std::chrono::milliseconds(1)));
    out += "\r\n";
  }
  if (row.should_retry == ShouldRetry::unsaid) return;
  const bool retry = row.should_retry == ShouldRetry::first_time && answer.repeat_ok &&
                     std::chrono::seconds(seconds) <= policies::advice_longest;
  out += retry ? "x-should-retry: true\r\n" : "x-should-retry: false\r\n";
}

}  // namespace

const RefusalRow& row_of(Refusal refusal) { return table[static_cast<std::size_t>(refusal)]; }

RefusalAnswer refusal_for(const policies::Answer& answer, const policies::Outcome& last) {
  RefusalAnswer out;
  out.retry_after = answer.retry_after;
  out.repeat_ok = answer.repeat_ok;
  out.value = answer.value;
  out.limit = answer.limit;
  switch (answer.code) {
    case Code::model_not_found:
      out.refusal = R::model_not_found;
      break;
    case Code::no_healthy_backend:
      out.refusal = R::no_healthy_backend;
      break;
    case Code::queue_full:
      out.refusal = R::queue_full;
      break;
    case Code::deadline_unmeetable:
      out.refusal = R::deadline_unmeetable;
      break;
    case Code::deadline_exceeded:
      out.refusal = R::deadline_exceeded;
      break;
    case Code::as_received:
      out.refusal = R::upstream_status;
      out.status = last.status;
      break;
    case Code::upstream_failed:
      out.refusal = last.end != policies::End::in_band_error ? R::upstream_failed
                    : last.overloaded                        ? R::upstream_overloaded
                                                             : R::upstream_in_band;
      break;
    case Code::upstream_timeout:
      out.refusal = R::upstream_timeout;
      break;
    case Code::upstream_auth:
      out.refusal = R::upstream_auth;
      break;
    case Code::no_socket:
      out.refusal = R::upstream_socket;
      break;
    case Code::requests_per_minute:
      out.refusal = R::requests_per_minute;
      break;
    case Code::tokens_per_minute:
      out.refusal = R::tokens_per_minute;
      break;
    case Code::concurrency:
      out.refusal = R::concurrency;
      break;
    case Code::request_too_large_for_limit:
      out.refusal = R::request_too_large;
      break;
    case Code::cost_budget_unmeetable:
      out.refusal = out.value < 0 ? R::quality_unmeetable : R::cost_unmeetable;
      break;
    case Code::stream_cut:
      out.refusal = R::stream_cut;
      break;
  }
  return out;
}

void append_error_body(std::string& out, const RefusalAnswer& answer) {
  const RefusalRow& row = row_of(answer.refusal);
  out += "{\"error\":{\"message\":";
  append_message(out, row, answer);
  out.append(",\"type\":\"").append(row.type).append("\",\"param\":");
  if (answer.param.empty()) {
    out += "null";
  } else {
    append_quoted(out, answer.param);
  }
  out += text_of(answer.refusal).body_end;
}

void append_error_event(std::string& out, const RefusalAnswer& answer) {
  out += "data: ";
  append_error_body(out, answer);
  out += "\n\n";
}

void append_refusal_head(std::string& out, const RefusalAnswer& answer) {
  const RowText& text = text_of(answer.refusal);
  if (answer.status == 0) {
    out += text.status_lines;
  } else {
    append_status_lines(out, answer.status);
  }
  if (!answer.request_id.empty()) append_line(out, "x-request-id", answer.request_id);
  if (!answer.backend_had_part) out += text.refusal_line;
  append_advice(out, row_of(answer.refusal), answer);
  if (!answer.allow.empty()) append_line(out, "Allow", answer.allow);
  out += answer.more_head;
}

void append_refusal_body(std::string& out, const RefusalAnswer& answer) {
  out += "Content-Length: ";
  const std::size_t length_at = out.size();
  out += "\r\n\r\n";
  const std::size_t body_at = out.size();
  append_error_body(out, answer);
  char digits[24];
  const char* const end = std::to_chars(digits, digits + sizeof digits, out.size() - body_at).ptr;
  if (answer.without_body) out.resize(body_at);
  out.insert(length_at, digits, static_cast<std::size_t>(end - digits));
}

std::string_view reason_phrase(std::uint16_t status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 424:
      return "Failed Dependency";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

}  // namespace headgate::gateway
