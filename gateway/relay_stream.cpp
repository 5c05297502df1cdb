// A stream of events, relayed event by event: hold, head, commit (DESIGN "Streams").
//   hold    for head_hold after the backend's head nothing is sent: any failure fails over unseen
//   head    then head and comments go out; other events wait for content; a final failure is one error event
//   commit  the first content, finish reason or [DONE] sends all that waited; no other backend can take over
// An event's bytes go out as received. A partial one stays in the backend's buffer (at most 64 KiB) and is dropped at a
// cut; one that is longer is ended by an empty line then: an error event always stands on its own.
#include <algorithm>
#include <array>

#include "backends/wire/sse_scan.hpp"
#include "gateway/attempt.hpp"
#include "gateway/conclude.hpp"
#include "gateway/heads.hpp"
#include "policies/base/tokens.hpp"

namespace headgate::gateway {

using policies::End;

namespace {

constexpr std::size_t undecided_max = 64 << 10;
constexpr Nanos reader_slow = std::chrono::milliseconds(5);  // a write that takes longer: the caller holds us up
constexpr Nanos end_grace = std::chrono::milliseconds(250);  // after [DONE], for the backend to end its answer

class StreamRelay {
 public:
  explicit StreamRelay(Attempt& attempt) : a_(attempt), x_(attempt.x) {
    asked_ = x_.request.skim.include_usage.value_or(false);
  }

  backends::Task<bool> run();

 private:
  void scan();
  void look_at(const wire::EventFacts& facts, std::size_t size);
  void add_missing_end();
  backends::Task<bool> send_ready();
  void take_comments_out();
  std::optional<End> trouble(Time now) const;
  bool over(Time now) const;
  Time wait_until() const;
  void count_tokens();
  void time_gaps(Time now);
  bool whole() const { return done_ || finish_; }

  Attempt& a_;
  Exchange& x_;
  wire::EventEnd event_end_;
  std::size_t ready_ = 0;  // bytes of whole events at the front of the buffer, not yet sent
  std::string comments_;   // taken out from between events that wait
  std::string tail_end_;   // the empty line that the last event lacked
  bool asked_ = false;     // the caller wants the usage event
  bool committed_ = false, done_ = false, finish_ = false, error_ = false, complete_ = false;
  bool usage_ = false;
  wire::TokenUsage tokens_;
  std::uint32_t content_events_ = 0, events_timed_ = 0;
  Time content_at_{};  // the last one's that came while we listened; zero: a gap that begins here says nothing
  Time heard_at_{}, done_at_{};
};

// Nothing more is to come. What is behind [DONE] is waited for briefly, so that the connection can be used again. A
// finish reason makes the answer whole even if the connection then breaks.
bool StreamRelay::over(Time now) const {
  if (a_.body_done() || (whole() && a_.body_broken())) return true;
  return done_ && (x_.abandoned() || now >= after(done_at_, end_grace));
}

// Every whole event that has come: what it says decides whether and when it goes on.
void StreamRelay::scan() {
  for (;;) {
    const std::string_view window = a_.body.data(a_.link->in()).substr(ready_);
    const std::size_t size = window.empty() ? 0 : event_end_.find(window);
    if (size == 0) {
      if (window.size() < undecided_max) return;
      // Too long to wait for: it goes on as it is.
      event_end_.reset();
      committed_ = x_.request.inside_event = true;
      ready_ += window.size();
      return;
    }
    look_at(x_.event_reader.read(window.substr(0, size)), size);
    if (error_) return;
  }
}

void StreamRelay::look_at(const wire::EventFacts& facts, std::size_t size) {
  x_.shard.counters.stream_events.add();
  if (facts.malformed) x_.shard.counters.sse_parse_errors.add();
  if (facts.usage) {
    usage_ = true;
    tokens_ = facts.tokens;
  }
  if (facts.content) ++content_events_;
  finish_ = finish_ || facts.finish;
  if (facts.done && !done_) done_at_ = x_.shard.now();
  done_ = done_ || facts.done;
  if (facts.error) {
    error_ = true;
    a_.overloaded = facts.overloaded;
    if (!committed_) return;  // never shown: another backend may do better
    if (!may_be_shown(a_.body.data(a_.link->in()).substr(ready_, size), *a_.target)) return;
    x_.request.error_event_sent = true;
  }
  if (facts.usage_only && !asked_) {
    a_.link->in().erase(ready_, ready_ + size);
    a_.body.erased(size);
    return;
  }
  if (!committed_ && x_.request.head_sent && facts.comment_only) {
    comments_.append(a_.body.data(a_.link->in()).substr(ready_, size));
    a_.link->in().erase(ready_, ready_ + size);
    a_.body.erased(size);
    return;
  }
  ready_ += size;
  x_.request.inside_event = false;
  if (facts.content || facts.finish || facts.done || ready_ >= undecided_max) committed_ = true;
}

// A last event without its empty line, in an answer that ended in good order.
void StreamRelay::add_missing_end() {
  const std::string_view rest = a_.body.data(a_.link->in()).substr(ready_);
  if (error_ || rest.empty() || !a_.body_done()) return;
  const std::string_view end = rest.ends_with('\n') || rest.ends_with('\r') ? "\n" : "\n\n";
  const wire::EventFacts facts = wire::read_event(std::string(rest).append(end));
  if (facts.malformed) return;  // cut inside the event: dropped
  tail_end_ = end;
  look_at(facts, rest.size());
}

// Between hold and commit comments need not wait for the events before them.
void StreamRelay::take_comments_out() {
  wire::EventEnd ends;
  for (std::size_t at = 0; at < ready_;) {
    const std::string_view window = a_.body.data(a_.link->in()).substr(at, ready_ - at);
    const std::size_t size = ends.find(window);
    if (size == 0) return;
    if (wire::read_event(window.substr(0, size)).comment_only) {
      comments_.append(window.substr(0, size));
      a_.link->in().erase(at, at + size);
      a_.body.erased(size);
      ready_ -= size;
    } else {
      at += size;
    }
  }
}

// Sends what may go out now. False: the caller is gone.
backends::Task<bool> StreamRelay::send_ready() {
  RequestState& r = x_.request;
  x_.out.clear();
  if (!r.head_sent) {
    const bool chunked = x_.head.minor >= 1;
    if (!chunked) x_.close_after = true;
    write_answer_head(x_, 200, chunked ? "Transfer-Encoding: chunked\r\n" : "");
    r.head_sent = r.event_stream = true;
    r.chunked_out = chunked;
    r.status = 200;
    if (!committed_) take_comments_out();
  }
  const std::size_t from_buffer = committed_ ? ready_ : 0;
  const std::size_t total = comments_.size() + from_buffer + (committed_ ? tail_end_.size() : 0);
  const bool last = complete_;
  std::string_view behind;
  if (r.chunked_out && total > 0) {
    append_chunk_size(x_.out, total);
    behind = last ? "\r\n0\r\n\r\n" : "\r\n";
  } else if (r.chunked_out && last) {
    behind = "0\r\n\r\n";
  }
  if (last) r.finished = true;
  const std::string_view events = a_.body.data(a_.received()).substr(0, from_buffer);
  const std::string_view tail = committed_ ? std::string_view(tail_end_) : std::string_view();
  std::array<backends::Piece, 5> pieces{boost::asio::buffer(x_.out), boost::asio::buffer(comments_),
                                        boost::asio::buffer(events), boost::asio::buffer(tail),
                                        boost::asio::buffer(behind)};
  const bool sent = co_await x_.send(pieces, a_.start.end_by);
  comments_.clear();
  if (committed_) {
    tail_end_.clear();
    a_.body.consume(a_.received(), ready_);
    ready_ = 0;
  }
  co_return sent;
}

std::optional<End> StreamRelay::trouble(Time now) const {
  if (auto why = a_.interrupted(now)) return why;
  if (error_) return End::in_band_error;
  if (a_.body_broken()) return a_.body.bad() ? End::malformed : End::truncated;
  if (!committed_ && now >= a_.start.first_token_by) return End::first_token_late;
  if (committed_ && now >= after(heard_at_, a_.start.idle)) return End::stalled;
  return std::nullopt;
}

Time StreamRelay::wait_until() const {
  if (done_) return std::min(after(done_at_, end_grace), a_.start.end_by);
  if (committed_) return std::min(after(heard_at_, a_.start.idle), a_.start.end_by);
  const Time until = std::min(a_.start.first_token_by, a_.start.end_by);
  return x_.request.head_sent ? until : std::min(until, after(a_.head_at, x_.request.route->head_hold));
}

void StreamRelay::count_tokens() {
  RequestState& r = x_.request;
  r.usage_reported = usage_;
  r.input_tokens = usage_ ? tokens_.input : estimate_tokens(r.skim.text_bytes);
  r.output_tokens = usage_ ? tokens_.output : content_events_;
  r.cached_tokens = tokens_.cached;
}

// Events that came together share the time since those before.
void StreamRelay::time_gaps(Time now) {
  if (content_events_ == events_timed_) return;
  if (content_at_ != Time()) {
    const auto endpoint = static_cast<std::uint32_t>(a_.start.endpoint);
    x_.shard.gaps.add(endpoint, content_events_ - events_timed_, now - content_at_);
  }
  events_timed_ = content_events_;
  content_at_ = now;
}

backends::Task<bool> StreamRelay::run() {
  RequestState& r = x_.request;
  Time now = x_.shard.now();
  for (bool news = true;;) {
    scan();
    add_missing_end();
    const bool commits = committed_ && r.content_at == Time();
    if (commits) {
      x_.shard.shared.host.first_token(a_.start.attempt);
      r.content_at = now;
      r.content_sent = true;
    }
    if (committed_) count_tokens();
    if (committed_) time_gaps(now);
    const bool hold_over = !r.head_sent && now >= after(a_.head_at, r.route->head_hold);
    complete_ = committed_ && over(now) && whole() && !error_;
    if (complete_) a_.succeed();  // counted and released before the caller sees the end
    const bool failing = !committed_ && trouble(now).has_value();
    if (complete_) a_.give_back();  // while the caller takes the rest it serves others
    if (complete_ || (committed_ && (ready_ > 0 || commits || over(now))) || !comments_.empty() ||
        (hold_over && !failing)) {
      const Time begun = now;
      const bool sent = co_await send_ready();
      if (!complete_ && !sent) co_return a_.end(End::cancelled);
      if (complete_ && !sent) x_.close_after = true;
      now = x_.shard.now();
      if (now - begun > reader_slow) content_at_ = Time();
    }
    if (complete_) break;
    if (news) heard_at_ = now;  // silence counts only while we listen
    if (auto why = trouble(now)) co_return a_.end(*why);
    if (over(now) && !whole()) co_return a_.end(End::truncated);
    if (over(now)) continue;  // it became complete while the caller took its time
    const std::uint64_t seen = a_.link->bytes_read();
    a_.room_for(ready_ + undecided_max + 1024);
    while (a_.link->bytes_read() == seen && !trouble(now) && !over(now) && wait_until() > now) {
      co_await a_.more(wait_until());
      now = x_.shard.now();
    }
    news = a_.link->bytes_read() != seen;
  }
  co_return true;
}

}  // namespace

backends::Task<bool> relay_stream(Attempt& a) {
  StreamRelay relay(a);
  co_return co_await relay.run();
}

}  // namespace headgate::gateway
