#include "gateway/heads.hpp"

#include <algorithm>
#include <charconv>

#include "backends/wire/json_walk.hpp"
#include "gateway/conclude.hpp"
#include "gateway/json_text.hpp"

namespace headgate::gateway {

namespace {

using wire::Name;

// Connection headers may list others to drop, besides close and keep-alive.
bool plain_connection(std::string_view value) {
  return wire::equals_ignoring_case(value, "close") || wire::equals_ignoring_case(value, "keep-alive");
}

bool connection_lists_others(std::span<const wire::Field> fields) {
  return std::any_of(fields.begin(), fields.end(), [](const wire::Field& field) {
    return field.id == Name::connection && !plain_connection(field.value);
  });
}

bool listed_by_connection(std::span<const wire::Field> fields, std::string_view name) {
  return std::any_of(fields.begin(), fields.end(), [&](const wire::Field& field) {
    return field.id == Name::connection && wire::lists_token(field.value, name);
  });
}

bool hop_by_hop(Name name) {
  switch (name) {
    case Name::connection:
    case Name::te:
    case Name::trailer:
    case Name::upgrade:
    case Name::keep_alive:
    case Name::proxy_any:
    case Name::transfer_encoding:
    case Name::content_length:
      return true;
    default:
      return false;
  }
}

bool stops_before_backend(Name name, bool forward_client_auth) {
  switch (name) {
    case Name::authorization:
    case Name::x_api_key:
    case Name::api_key:
      return !forward_client_auth;
    case Name::cookie:
    case Name::x_headgate_any:
    case Name::x_stainless_any:
    case Name::expect:
    case Name::accept_encoding:
    case Name::host:
    case Name::x_request_id:
      return true;
    default:
      return hop_by_hop(name);
  }
}

bool stops_before_caller(Name name) {
  switch (name) {
    case Name::x_request_id:
    case Name::x_ratelimit_any:
    case Name::x_headgate_any:
    case Name::access_control_any:
      return true;
    default:
      return hop_by_hop(name);
  }
}

bool is_advice(Name name) {
  return name == Name::retry_after || name == Name::retry_after_ms || name == Name::x_should_retry;
}

// Whole seconds; a date or anything else is no advice.
Nanos read_retry_after(std::string_view text) {
  std::uint32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size()) return Nanos(-1);
  return std::chrono::seconds(seconds);
}

bool holds_secret(std::string_view text, const config::Target& target) {
  return std::any_of(target.never_shown.begin(), target.never_shown.end(), [&](const std::string& secret) {
    return !secret.empty() && text.find(secret) != std::string_view::npos;
  });
}

// Escapes, and nothing that would not be one in JSON.
bool has_json_escapes(std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdefABCDEF";
  bool found = false;
  for (std::size_t at = text.find('\\'); at != std::string_view::npos; at = text.find('\\', at)) {
    const std::string_view kind = text.substr(at + 1, 1), digits = text.substr(std::min(at + 2, text.size()), 4);
    const bool unicode = kind == "u" && digits.size() == 4 && digits.find_first_not_of(hex) == std::string_view::npos;
    if (!unicode && (kind.empty() || std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos)) return false;
    at += unicode ? 6 : 2;
    found = true;
  }
  return found;
}

void splice_body(Exchange& x, const config::Target& target) {
  const wire::Skim& skim = x.request.skim;
  x.splice.clear();
  if (!target.model.empty() && target.model != skim.model) wire::set_model(x.splice, skim, target.model);
  if (skim.stream && target.reports_usage) wire::ask_for_usage(x.splice, skim);
}

}  // namespace

std::span<backends::Piece> write_request_pieces(Exchange& x, const config::Target& target,
                                                std::span<backends::Piece> pieces) {
  splice_body(x, target);
  const std::string_view body = x.body_text();
  std::string& out = x.upstream_head;
  out.assign("POST ").append(x.head.target).append(" HTTP/1.1\r\nHost: ").append(target.authority).append("\r\n");
  if (!target.authorization.empty()) out.append("Authorization: ").append(target.authorization).append("\r\n");
  const bool lists = connection_lists_others(x.head.fields);
  const bool own_key = !target.authorization.empty();
  for (const wire::Field& field : x.head.fields) {
    const bool stops = stops_before_backend(field.id, target.forward_client_auth && !own_key) ||
                       (lists && listed_by_connection(x.head.fields, field.name));
    if (!stops) out.append(field.line);
  }
  out.append("x-request-id: ").append(x.request_id).append("\r\nContent-Length: ");
  append_number(out, x.splice.size(body));
  out.append("\r\n\r\n");
  std::size_t n = 0;
  pieces[n++] = boost::asio::buffer(out);
  for (const std::string_view piece : x.splice.pieces(body)) {
    if (!piece.empty()) pieces[n++] = boost::asio::buffer(piece);
  }
  return pieces.first(n);
}

AnswerLines copy_answer_lines(std::string& out, const wire::ResponseHead& head, const config::Target& target) {
  out.clear();
  AnswerLines facts;
  const bool lists = connection_lists_others(head.fields);
  for (const wire::Field& field : head.fields) {
    if (field.id == Name::content_type) {
      const std::string_view type = field.value.substr(0, field.value.find(';'));
      facts.event_stream = head.status == 200 && wire::equals_ignoring_case(type, "text/event-stream");
      facts.json = wire::equals_ignoring_case(type, "application/json");
    } else if (field.id == Name::content_encoding) {
      facts.encoded = !wire::equals_ignoring_case(field.value, "identity");
    } else if (field.id == Name::retry_after) {
      facts.retry_after = read_retry_after(field.value);
    }
    if (head.status != 200 && is_advice(field.id) && may_be_shown(field.value, target)) facts.advice.append(field.line);
  }
  for (const wire::Field& field : head.fields) {
    const bool stops = stops_before_caller(field.id) || (field.id == Name::cache_control && facts.event_stream) ||
                       (lists && listed_by_connection(head.fields, field.name)) || !may_be_shown(field.value, target);
    if (!stops) out.append(field.line);
  }
  if (facts.event_stream) out.append("Cache-Control: no-cache\r\n");
  return facts;
}

void write_answer_head(Exchange& x, std::uint16_t status, std::string_view framing) {
  x.out.assign("HTTP/1.1 ");
  append_number(x.out, status);
  x.out.append(" ").append(reason_phrase(status)).append("\r\n").append(x.relayed_lines);
  append_own_lines(x.out, x);
  append_backend_lines(x.out, x);
  x.out.append(framing).append("\r\n");
}

void append_chunk_size(std::string& out, std::size_t size) {
  char digits[16];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, size, 16).ptr).append("\r\n");
}

bool may_be_shown(std::string_view text, const config::Target& target) {
  if (holds_secret(text, target)) return false;
  if (!has_json_escapes(text)) return true;
  std::string plain;
  wire::append_unescaped(text, plain);
  return !holds_secret(plain, target);
}

}  // namespace headgate::gateway
