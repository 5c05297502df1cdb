// HTTP/1 messages and event streams as a test reads them: simple, whole, and written apart from the product's own
// parsers so that one fault cannot hide in both.
//
// ReplyReader takes bytes as they come and says when each arrived: reply.pieces holds the decoded body in the pieces of
// the reads. A reply is complete when its framing says so; one framed by the end of the connection is complete at
// close.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/waiting.hpp"

namespace headgate::support {

struct Head {
  std::string raw;  // with its empty line
  std::string start_line;
  std::vector<std::pair<std::string, std::string>> headers;  // in order, names as received

  std::vector<std::string> all(std::string_view name) const;  // every value of that name, any case
  std::string get(std::string_view name) const;               // the first value, or empty
  bool has(std::string_view name) const { return !all(name).empty(); }
  int status() const;                     // of a reply, 0 if it is none
  std::string word(std::size_t n) const;  // of the start line: 0 method, 1 target, 2 version
};

// The head at the front of `bytes`, or nothing while its empty line is missing.
std::optional<Head> parse_head(std::string_view bytes);

// The bytes of a chunked body, decoded as far as they are well-formed. `used`: encoded bytes taken.
struct Chunked {
  std::string body;
  std::size_t used = 0;
  bool complete = false;  // the final chunk and its empty line were there
  bool bad = false;
};
Chunked decode_chunks(std::string_view bytes);

struct Piece {
  Time at{};
  std::string bytes;
};

struct Reply {
  int status = 0;  // 0: no whole head came
  Head head;
  std::string body;           // decoded
  std::vector<Piece> pieces;  // the body by arrival
  std::string raw;            // everything as received, head included
  Time sent{}, head_at{}, ended_at{};
  bool complete = false;  // ended as its framing says
  bool closed = false;    // the peer closed the connection (in order)
  bool reset = false;     // the connection was reset
  bool bad_framing = false;

  Nanos took() const { return ended_at - sent; }
  Time arrival_of(std::size_t offset) const;  // of body byte `offset`; Time::max() if it never came
};

class ReplyReader {
 public:
  // Takes bytes received at `at`; returns how many belong to this reply.
  std::size_t take(std::string_view bytes, Time at);
  void end(Time at, bool reset);  // the connection ended
  Reply& reply() { return reply_; }

 private:
  void start_body(Head head, Time at);
  void decode(Time at);

  Reply reply_;
  std::string encoded_;  // body bytes not decoded yet
  bool chunked_ = false, until_close_ = false;
  std::size_t length_ = 0;
};

// Events of a stream, each without its blank line; an unfinished last one is given too. Ends may be LF, CR LF or CR.
std::vector<std::string> events_of(std::string_view stream);
// The payload of every event that has one (its `data:` lines joined with LF); comments and other fields are left out.
std::vector<std::string> data_of(std::string_view stream);
std::string last_data_of(std::string_view stream);  // "" if there is none
// The concatenated choices[].delta.content of a chat stream.
std::string content_of(std::string_view stream);

bool same_name(std::string_view a, std::string_view b);  // ignoring ASCII case

}  // namespace headgate::support
