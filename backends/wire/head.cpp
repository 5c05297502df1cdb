#include "backends/wire/head.hpp"

#include <cstring>

#include "backends/wire/ascii.hpp"
#include "backends/wire/byte_search.hpp"
#include "backends/wire/token.hpp"

namespace headgate::wire {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// `literal` is lower case letters and '-'; `name` holds token characters only, so setting bit 5 folds case exactly.
template <std::size_t N>
bool begins(std::string_view name, const char (&literal)[N]) {
  constexpr std::size_t length = N - 1;
  if (name.size() < length) return false;
  std::size_t i = 0;
  for (; i + 8 <= length; i += 8) {
    std::uint64_t a, b;
    std::memcpy(&a, name.data() + i, 8);
    std::memcpy(&b, literal + i, 8);
    if ((a | 0x2020202020202020u) != b) return false;
  }
  for (; i < length; ++i) {
    if ((name[i] | 0x20) != literal[i]) return false;
  }
  return true;
}

Name by_prefix(std::string_view name) {
  switch (name.front() | 0x20) {
    case 'a':
      return begins(name, "access-control-") ? Name::access_control_any : Name::other;
    case 'p':
      return begins(name, "proxy-") ? Name::proxy_any : Name::other;
    case 'x':
      if (begins(name, "x-headgate-")) return Name::x_headgate_any;
      if (begins(name, "x-ratelimit-")) return Name::x_ratelimit_any;
      if (begins(name, "x-stainless-")) return Name::x_stainless_any;
      return Name::other;
    default:
      return Name::other;
  }
}

// Each list is of names exactly as long as `name`; a prefix among them never equals one of these.
Name recognise(std::string_view name) {
  switch (name.size()) {
    case 2:
      if (begins(name, "te")) return Name::te;
      break;
    case 4:
      if (begins(name, "host")) return Name::host;
      if (begins(name, "date")) return Name::date;
      if (begins(name, "vary")) return Name::vary;
      break;
    case 6:
      if (begins(name, "cookie")) return Name::cookie;
      if (begins(name, "server")) return Name::server;
      if (begins(name, "expect")) return Name::expect;
      if (begins(name, "origin")) return Name::origin;
      break;
    case 7:
      if (begins(name, "api-key")) return Name::api_key;
      if (begins(name, "trailer")) return Name::trailer;
      if (begins(name, "upgrade")) return Name::upgrade;
      break;
    case 9:
      if (begins(name, "x-api-key")) return Name::x_api_key;
      break;
    case 10:
      if (begins(name, "connection")) return Name::connection;
      if (begins(name, "keep-alive")) return Name::keep_alive;
      break;
    case 11:
      if (begins(name, "retry-after")) return Name::retry_after;
      break;
    case 12:
      if (begins(name, "content-type")) return Name::content_type;
      if (begins(name, "x-request-id")) return Name::x_request_id;
      break;
    case 13:
      if (begins(name, "authorization")) return Name::authorization;
      if (begins(name, "cache-control")) return Name::cache_control;
      break;
    case 14:
      if (begins(name, "content-length")) return Name::content_length;
      if (begins(name, "retry-after-ms")) return Name::retry_after_ms;
      if (begins(name, "x-should-retry")) return Name::x_should_retry;
      break;
    case 15:
      if (begins(name, "accept-encoding")) return Name::accept_encoding;
      break;
    case 16:
      if (begins(name, "content-encoding")) return Name::content_encoding;
      break;
    case 17:
      if (begins(name, "transfer-encoding")) return Name::transfer_encoding;
      break;
    default:
      break;
  }
  return by_prefix(name);
}

HeadError parse_length(std::string_view digits, std::uint64_t& out) {
  constexpr std::uint64_t limit = (std::uint64_t{1} << 63) - 1;
  if (digits.empty()) return HeadError::content_length;
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (!is_digit(c)) return HeadError::content_length;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (value > (limit - digit) / 10) return HeadError::content_length;
    value = value * 10 + digit;
  }
  out = value;
  return HeadError::none;
}

// What the fields say about the message as a whole.
struct Message {
  bool has_length = false, has_encoding = false, close = false, keep_alive = false, expect_continue = false;
  unsigned hosts = 0;
  std::uint64_t length = 0;
};

HeadError note(const Field& field, unsigned minor, Message& message) {
  switch (field.id) {
    case Name::content_length:
      if (message.has_length) return HeadError::content_length;
      message.has_length = true;
      return parse_length(field.value, message.length);
    case Name::transfer_encoding:
      if (message.has_encoding || minor == 0 || !equals_ignoring_case(field.value, "chunked")) {
        return HeadError::transfer_encoding;
      }
      message.has_encoding = true;
      return HeadError::none;
    case Name::connection:
      message.close = message.close || lists_token(field.value, "close");
      message.keep_alive = message.keep_alive || lists_token(field.value, "keep-alive");
      return HeadError::none;
    case Name::host:
      ++message.hosts;
      return HeadError::none;
    case Name::expect:
      message.expect_continue = message.expect_continue || equals_ignoring_case(field.value, "100-continue");
      return HeadError::none;
    default:
      return HeadError::none;
  }
}

HeadError read_message(std::span<const Field> fields, unsigned minor, Message& message) {
  for (const Field& field : fields) {
    if (field.id == Name::other) continue;
    const HeadError error = note(field, minor, message);
    if (error != HeadError::none) return error;
  }
  return message.has_length && message.has_encoding ? HeadError::length_and_encoding : HeadError::none;
}

bool stays_open(const Message& message, unsigned minor) { return !message.close && (minor != 0 || message.keep_alive); }

// "HTTP/1.0" or "HTTP/1.1"; a higher minor version is spoken to as 1.1 (RFC 9110, 2.5).
HeadError parse_version(std::string_view text, std::uint8_t& minor) {
  if (text.size() != 8 || text.substr(0, 5) != "HTTP/" || !is_digit(text[5]) || text[6] != '.' || !is_digit(text[7])) {
    return HeadError::start_line;
  }
  if (text[5] != '1') return HeadError::version;
  minor = text[7] == '0' ? 0 : 1;
  return HeadError::none;
}

bool valid_target(std::string_view target) {
  for (const char c : target) {
    if (octet(c) <= 0x20 || octet(c) >= 0x7f) return false;
  }
  const auto has_scheme = [&](std::string_view scheme) {
    return target.size() > scheme.size() && equals_ignoring_case(target.substr(0, scheme.size()), scheme);
  };
  return target.substr(0, 1) == "/" || target == "*" || has_scheme("http://") || has_scheme("https://");
}

HeadError parse_request_line(std::string_view line, RequestHead& out) {
  const std::size_t method_end = line.find(' ');
  if (method_end == 0 || method_end == std::string_view::npos) return HeadError::start_line;
  out.method = line.substr(0, method_end);
  for (const char c : out.method) {
    if (!is_token(c)) return HeadError::start_line;
  }
  line.remove_prefix(method_end + 1);
  const std::size_t target_end = line.find(' ');
  if (target_end == 0 || target_end == std::string_view::npos) return HeadError::start_line;
  out.target = line.substr(0, target_end);
  if (!valid_target(out.target)) return HeadError::start_line;
  return parse_version(line.substr(target_end + 1), out.minor);
}

// The reason, and the space before it, may be missing.
HeadError parse_status_line(std::string_view line, ResponseHead& out) {
  if (line.size() < 12 || line[8] != ' ' || (line.size() > 12 && line[12] != ' ')) return HeadError::start_line;
  const HeadError error = parse_version(line.substr(0, 8), out.minor);
  if (error != HeadError::none) return error;
  unsigned status = 0;
  for (const char c : line.substr(9, 3)) {
    if (!is_digit(c)) return HeadError::start_line;
    status = status * 10 + static_cast<unsigned>(c - '0');
  }
  if (status < 100 || status > 599) return HeadError::start_line;
  out.status = static_cast<std::uint16_t>(status);
  out.reason = line.size() > 13 ? line.substr(13) : std::string_view();
  return HeadError::none;
}

// `line` with its CR LF; bytes before `readable` may be loaded.
HeadError parse_field(std::string_view line, const char* readable, Field& out) {
  if (is_blank(line.front())) return HeadError::obs_fold;
  const char* const end = line.data() + line.size();
  auto colon = static_cast<std::size_t>(find_byte<RareNameByte>(line.data(), end, readable) - line.data());
  while (is_token(line[colon])) ++colon;  // stops at the CR at the latest
  if (colon == 0 || line[colon] != ':') return HeadError::field_name;
  out.line = line;
  out.name = line.substr(0, colon);
  out.value = trim(line.substr(colon + 1, line.size() - colon - 3));
  out.id = recognise(out.name);
  return HeadError::none;
}

}  // namespace

Read HeadReader::fail(HeadError error) {
  error_ = error;
  reset();
  return Read::bad;
}

// Collects line ends until the empty line. Controls are judged here, line by line as they arrive, so that a head with
// bare LFs is refused at once instead of being waited for.
Read HeadReader::find_lines(std::string_view bytes, std::size_t begin) {
  const char* const base = bytes.data();
  const char* const end = base + bytes.size();
  for (const char* at = base + (searched_ > begin ? searched_ : begin);;) {
    at = find_byte<ControlByte>(at, end, end);
    searched_ = static_cast<std::size_t>(at - base);
    if (at == end) return Read::incomplete;
    if (*at != '\r') {
      if (*at == '\n' || *at == '\0') return fail(HeadError::line_end);
      return fail(line_ends_.empty() ? HeadError::start_line : HeadError::field_value);
    }
    if (at + 1 == end) return Read::incomplete;
    if (at[1] != '\n') return fail(HeadError::line_end);
    const std::size_t line_begin = line_ends_.empty() ? begin : line_ends_.back();
    const bool empty = line_begin == searched_;
    if (empty && line_ends_.empty()) return fail(HeadError::start_line);
    at += 2;
    searched_ += 2;
    if (empty) return Read::complete;
    if (line_ends_.size() == fields_max + 1) return fail(HeadError::too_many_fields);
    line_ends_.push_back(static_cast<std::uint32_t>(searched_));
  }
}

bool HeadReader::read_fields(std::string_view bytes, std::span<const Field>& fields) {
  const std::size_t count = line_ends_.size() - 1;
  if (fields_.size() < count) fields_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view line = bytes.substr(line_ends_[i], line_ends_[i + 1] - line_ends_[i]);
    error_ = parse_field(line, bytes.data() + bytes.size(), fields_[i]);
    if (error_ != HeadError::none) return false;
  }
  fields = std::span<const Field>(fields_.data(), count);
  return true;
}

Read HeadReader::request(std::string_view bytes, RequestHead& out) {
  error_ = HeadError::none;
  std::size_t begin = 0;
  if (bytes.substr(0, 1) == "\r") {  // one empty line before a request is forgiven (RFC 9112, 2.2)
    if (bytes.size() == 1) return Read::incomplete;
    if (bytes[1] == '\n') begin = 2;
  }
  const Read found = find_lines(bytes, begin);
  if (found != Read::complete) return found;
  out = RequestHead{};
  out.bytes = searched_;
  HeadError error = parse_request_line(bytes.substr(begin, line_ends_[0] - begin - 2), out);
  if (error != HeadError::none) return fail(error);
  if (!read_fields(bytes, out.fields)) return fail(error_);
  Message message;
  error = read_message(out.fields, out.minor, message);
  if (error != HeadError::none) return fail(error);
  if (message.hosts > 1 || (message.hosts == 0 && out.minor != 0)) return fail(HeadError::host);
  out.keep_alive = stays_open(message, out.minor);
  out.expect_continue = message.expect_continue && out.minor != 0;
  out.content_length = message.length;
  out.framing = message.has_encoding ? Framing::chunked : message.has_length ? Framing::length : Framing::none;
  reset();
  return Read::complete;
}

Read HeadReader::response(std::string_view bytes, ResponseHead& out) {
  error_ = HeadError::none;
  const Read found = find_lines(bytes, 0);
  if (found != Read::complete) return found;
  out = ResponseHead{};
  out.bytes = searched_;
  HeadError error = parse_status_line(bytes.substr(0, line_ends_[0] - 2), out);
  if (error != HeadError::none) return fail(error);
  if (!read_fields(bytes, out.fields)) return fail(error_);
  Message message;
  error = read_message(out.fields, out.minor, message);
  if (error != HeadError::none) return fail(error);
  out.content_length = message.length;
  if (out.status < 200 || out.status == 204 || out.status == 304) {
    out.framing = Framing::none;
  } else if (message.has_encoding) {
    out.framing = Framing::chunked;
  } else {
    out.framing = message.has_length ? Framing::length : Framing::until_close;
  }
  out.keep_alive = stays_open(message, out.minor) && out.framing != Framing::until_close;
  reset();
  return Read::complete;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

bool lists_token(std::string_view list, std::string_view token) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (equals_ignoring_case(trim(list.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::string_view describe(HeadError error) {
  switch (error) {
    case HeadError::none:
      return "no error";
    case HeadError::start_line:
      return "malformed request or status line";
    case HeadError::version:
      return "HTTP version is not 1.0 or 1.1";
    case HeadError::field_name:
      return "header name is empty, has an invalid character or a space before its colon";
    case HeadError::field_value:
      return "header value has a control character";
    case HeadError::line_end:
      return "header line has a bare LF, a bare CR or a NUL";
    case HeadError::obs_fold:
      return "header line is folded";
    case HeadError::host:
      return "Host is missing or repeated";
    case HeadError::content_length:
      return "Content-Length is repeated, not all digits or too large";
    case HeadError::transfer_encoding:
      return "Transfer-Encoding is not exactly 'chunked', or sent in HTTP/1.0";
    case HeadError::length_and_encoding:
      return "both Content-Length and Transfer-Encoding are present";
    case HeadError::too_many_fields:
      return "more than 128 header fields";
  }
  return "unknown error";
}

}  // namespace headgate::wire
