// HTTP/1 heads as views into the caller's buffer: tokenized once, checked by the strict rules of a proxy, never copied.
// Both sides of the gateway, the mock server and the load generator use it. Limits are the caller's business, except
// the number of fields (fields_max).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace headgate::wire {

inline constexpr std::size_t fields_max = 128;

// Names the gateway treats specially, recognised while tokenizing. *_any: every name with that prefix.
enum class Name : std::uint8_t {
  other,
  accept_encoding,
  access_control_any,
  api_key,
  authorization,
  cache_control,
  connection,
  content_encoding,
  content_length,
  content_type,
  cookie,
  date,
  expect,
  host,
  keep_alive,
  origin,
  proxy_any,
  retry_after,
  retry_after_ms,
  server,
  te,
  trailer,
  transfer_encoding,
  upgrade,
  vary,
  x_api_key,
  x_headgate_any,
  x_ratelimit_any,
  x_request_id,
  x_should_retry,
  x_stainless_any,
};

struct Field {
  Name id = Name::other;
  std::string_view name;   // as received
  std::string_view value;  // without white space around it
  std::string_view line;   // the whole line with its CR LF
};

enum class Framing : std::uint8_t { none, length, chunked, until_close };

enum class HeadError : std::uint8_t {
  none,
  start_line,   // request or status line malformed
  version,      // not HTTP/1.x
  field_name,   // empty, invalid character, or white space before the colon
  field_value,  // control character
  line_end,     // bare LF or bare CR, or NUL
  obs_fold,
  host,               // missing in HTTP/1.1, or repeated
  content_length,     // not digits, repeated, or from 2^63 on
  transfer_encoding,  // other than exactly "chunked", repeated, or in HTTP/1.0
  length_and_encoding,
  too_many_fields,
};
std::string_view describe(HeadError error);  // for a message to a person

struct RequestHead {
  std::string_view method, target;
  std::uint8_t minor = 1;  // HTTP/1.minor
  bool keep_alive = true;  // by version and Connection
  bool expect_continue = false;
  Framing framing = Framing::none;
  std::uint64_t content_length = 0;
  std::span<const Field> fields;
  std::size_t bytes = 0;  // of the head, with its empty line
};

struct ResponseHead {
  std::uint16_t status = 0;
  std::string_view reason;
  std::uint8_t minor = 1;
  bool keep_alive = true;
  Framing framing = Framing::none;  // as for an answer to POST or GET; 1xx and 204: none
  std::uint64_t content_length = 0;
  std::span<const Field> fields;
  std::size_t bytes = 0;
};

enum class Read : std::uint8_t { incomplete, complete, bad };

// Holds the field table; reused for one message after another. `bytes` starts at the message's first byte, is the same
// buffer (grown) at each call for one message, and must stay in place while the head is used.
class HeadReader {
 public:
  Read request(std::string_view bytes, RequestHead& out);
  Read response(std::string_view bytes, ResponseHead& out);
  HeadError error() const { return error_; }
  void reset() {  // before the next message, if this one was left incomplete
    searched_ = 0;
    line_ends_.clear();
  }

 private:
  Read find_lines(std::string_view bytes, std::size_t begin);
  bool read_fields(std::string_view bytes, std::span<const Field>& fields);
  Read fail(HeadError error);

  std::vector<Field> fields_;             // as many as a message had
  std::vector<std::uint32_t> line_ends_;  // offset behind each line found so far
  std::size_t searched_ = 0;  // bytes before this offset belong to complete, clean lines or to the last, open one
  HeadError error_ = HeadError::none;
};

// True if `list` (a comma-separated value such as Connection's) holds `token`, ignoring case.
bool lists_token(std::string_view list, std::string_view token);
bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace headgate::wire
