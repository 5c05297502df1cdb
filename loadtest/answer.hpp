// One HTTP answer as the load generator sees it: a state machine without I/O. Bytes go in with the time they arrived;
// what they said comes out as Facts, and judge() makes an outcome of it. Heads and bodies follow the strict rules of
// backends/wire. A whole event is at most 1 MiB, a unary body 64 MiB; more is "malformed".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/wire/framing.hpp"
#include "backends/wire/head.hpp"
#include "backends/wire/sse_scan.hpp"
#include "loadtest/recorder.hpp"
#include "loadtest/trace.hpp"
#include "policies/base/time.hpp"

namespace headgate::loadtest {

struct Facts {
  std::uint16_t status = 0;                          // 0: no head arrived
  std::string refusal, backend;                      // x-headgate-refusal, x-headgate-backend
  std::uint32_t attempts = 0;                        // x-headgate-attempts
  bool complete = false;                             // the framing ended as announced
  bool malformed = false;                            // head, chunk framing, event or JSON
  std::string error_code;                            // error.code of an error body
  Time first_content = never, last_content = never;  // of a stream
  Nanos gap_max{};                                   // between two content events
  std::uint32_t content_events = 0, finishes = 0, error_events = 0, dones = 0;
  bool error_is_last = true;  // nothing but comments came after the error event
  bool usage = false;
  wire::TokenUsage tokens;  // reported
  std::uint32_t words = 0;  // of a unary answer's text
};

enum class Outcome : std::uint8_t {
  pending,  // not ended
  ok,
  refused,                    // the gateway's own no: x-headgate-refusal
  failed_before_first_token,  // any other end without content
  cut,                        // content, then exactly one error event, no [DONE], no finish
  cut_dirty,                  // content, and any other end that is not whole
  wrong_count,                // whole, but not the tokens asked for
  left,                       // the caller went before any content had come
};
std::string_view name_of(Outcome outcome);

struct Verdict {
  Outcome outcome = Outcome::pending;
  std::string reason;  // of refused: the code; of failures: status and code, or what the transport said
};
// `transport` is empty when the answer ended by itself, else what ended it: "connect", "reset", "timeout", "closed".
Verdict judge(const Facts& facts, const Planned& planned, std::string_view transport, bool check_tokens);

class AnswerReader {
 public:
  void start(bool stream);
  void gaps_into(Histogram* itl) { itl_ = itl; }  // between content events; outlives this

  // Takes what it can use from the front of `window` and returns how much that was. The rest, an incomplete head, is
  // shown again with more behind it.
  std::size_t feed(std::string_view window, Time now);
  void end_of_input(Time now);  // the peer closed

  bool done() const { return done_; }
  bool keep_alive() const { return keep_alive_ && facts_.complete; }
  bool head_read() const { return facts_.status != 0; }
  const Facts& facts() const { return facts_; }

 private:
  std::size_t read_head(std::string_view window);
  void take_body(std::string_view data, Time now);
  void take_event(std::string_view event, Time now);
  void finish(Time now);
  void fail();

  wire::HeadReader head_;
  wire::BodyMeter meter_;
  wire::EventEnd event_end_;
  std::string body_;  // a partial event; all of a body that is no stream
  Facts facts_;
  Histogram* itl_ = nullptr;
  bool stream_ = true, events_ = false, in_body_ = false, done_ = false, keep_alive_ = false;
};

}  // namespace headgate::loadtest
