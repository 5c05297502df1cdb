// Server-sent events of an OpenAI-style stream: where an event ends, and what it says. Bytes are looked at in place.
// Line ends are LF, CR LF or CR; an event ends with an empty line. An event is never kept waiting to see whether its
// last CR is followed by an LF: such an LF, if it comes later, counts as an (empty) event of its own. UTF-8 is not
// checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headgate::wire {

// Finds the end of the event at the start of `window`, which grows from call to call until the event is complete.
class EventEnd {
 public:
  // Length of the event with its empty line, or 0 when more bytes are needed. After a hit the next call starts afresh.
  std::size_t find(std::string_view window);
  void reset() { searched_ = 0; }

 private:
  std::size_t searched_ = 0;
};

struct TokenUsage {
  std::uint32_t input = 0, output = 0, cached = 0;
};

struct EventFacts {
  bool comment_only = false;  // comment lines, or nothing: no data field
  bool done = false;          // data: [DONE]
  bool error = false;         // a top-level "error" object (not null)
  bool overloaded = false;    // of an error: type or code says overloaded or rate_limit
  bool content = false;       // non-empty content, text, reasoning, refusal, tool-call, function-call or audio delta
  bool finish = false;        // a finish_reason that is not null
  bool usage = false;         // a usage object (null does not count); `tokens` is set
  bool usage_only = false;    // usage with an empty choices list: the event asked for by include_usage
  bool malformed = false;     // data that is not JSON and not [DONE]
  TokenUsage tokens;
  std::string_view text;  // the last content that was a string, as written, inside the event; empty: none, or not known
};

// Looks once at a complete event. Thread-safe; allocates nothing for events up to 64 KiB.
EventFacts read_event(std::string_view event);

// read_event() for the events of streams, most of which differ from the one before in their text alone: where the bytes
// around the text are those of an event that was read whole, and the text is plain, they say the same.
class EventReader {
 public:
  EventFacts read(std::string_view event);

 private:
  static constexpr std::size_t around_max = 2048;
  std::string before_, behind_;  // the text of an event whose only news was content
};

// The same for a whole unary answer body: usage, error, and whether it is JSON at all.
struct AnswerFacts {
  bool json = false;
  bool error = false, overloaded = false;
  bool usage = false;
  TokenUsage tokens;
};
AnswerFacts read_answer(std::string_view body);

}  // namespace headgate::wire
