#include "gateway/attempt.hpp"

#include <algorithm>

#include "backends/io/tls_session.hpp"
#include "backends/wire/sse_scan.hpp"
#include "gateway/heads.hpp"

namespace headgate::gateway {

using policies::End;

namespace {
constexpr std::size_t kept_answer_max = 64 << 10;
constexpr int interim_max = 16;
}  // namespace

Attempt::Attempt(Exchange& exchange, const policies::Start& order, std::shared_ptr<const config::Target> backend,
                 Time now)
    : x(exchange), start(order), target(std::move(backend)), started_at_(now), kept_(exchange.shard.buffers) {
  x.request.target = target;
  ++x.request.attempts;
}

Attempt::~Attempt() {
  if (!ended_) x.shard.shared.host.abandon(start.attempt);
  if (link) {
    link->owner(nullptr);
    x.shard.counters.upstream_connections.sub();
  }
}

std::optional<End> Attempt::interrupted(Time now) const {
  if (x.abandoned()) return End::cancelled;
  if (now >= start.end_by) return End::out_of_time;
  return std::nullopt;
}

bool Attempt::room_for(std::size_t bytes_max) {
  backends::Buffer& in = link->in();
  if (in.empty() || in.room() > 0) return true;
  if (in.size() >= bytes_max) return false;
  in.reserve(std::min(in.size() + 1, bytes_max));
  return true;
}

PassedLimit Attempt::passed_limit(End how) const {
  const auto since_start = [&](std::string_view name, Time by) {
    return PassedLimit{name, by - started_at_, x.shard.now() - started_at_};
  };
  switch (how) {
    case End::connect:
      return since_start("connect", start.connect_by);
    case End::first_byte_late:
      return since_start("first_byte", start.first_byte_by);
    case End::first_token_late:
      return since_start("first_token", start.first_token_by);
    case End::stalled:
      return {"idle", start.idle, start.idle};
    case End::out_of_time:
      return since_start("the whole answer", start.end_by);
    default:
      return {};
  }
}

bool Attempt::end(End how) {
  x.request.passed = passed_limit(how);
  policies::Outcome& outcome = x.request.outcome;
  outcome = {.end = how,
             .status = head.status,
             .retry_after = retry_after_,
             .overloaded = overloaded,
             .input_tokens = x.request.input_tokens,
             .output_tokens = x.request.output_tokens,
             .estimated = !x.request.usage_reported};
  ended_ = true;
  const bool whole = how == End::ok || (how == End::status && body.done());
  if (link && !whole) link->close();
  x.shard.shared.host.ended(start.attempt, outcome, x.owner(), x.inbox);
  return false;
}

void Attempt::succeed() {
  x.request.status = head.status;
  end(End::ok);
  x.request.id = policies::RequestId::none;
}

void Attempt::give_back() {
  const bool again = keep_alive_ && request_written_ && body.done() && link->in().size() == body.size();
  link->owner(nullptr);
  kept_ = std::move(link->in());
  if (again) {
    x.shard.upstream.give(static_cast<std::uint32_t>(start.endpoint), std::move(link), x.shard.now());
    if (target->connections->pressed()) x.shard.lend_idle(*target);
  }
  link.reset();
  x.shard.counters.upstream_connections.sub();
}

backends::Task<bool> Attempt::run() {
  for (bool idle_too = true;; idle_too = false) {
    End step = co_await connect(idle_too);
    share_ = {};  // of a connection that did not come about
    if (step != End::ok) co_return end(step);
    step = co_await write_request();
    if (step == End::ok) step = co_await read_head();
    // A reused connection that the backend had just closed: once more on a fresh one; not an attempt. After the whole
    // request went out the backend may have read it all the same.
    const bool again = step == End::unsent || (step == End::sent_no_answer && x.request.route->after_delivery);
    const bool stale = reused_ && link->bytes_read() == bytes_before_ && again;
    if (step == End::ok) break;
    if (!stale) co_return end(step);
    link.reset();
    x.shard.counters.upstream_connections.sub();
  }
  using policies::Fault;
  const Fault fault = policies::fault_of_status(head.status, target->forward_client_auth);
  const bool never_relayed = head.status < 400 && head.status != 200;
  if (never_relayed) co_return end(End::malformed);
  take_head();
  if (x.request.head_sent && head.status == 200 && !event_stream) co_return end(End::malformed);  // a stream has begun
  if ((fault != Fault::none && fault != Fault::callers) || (x.request.head_sent && head.status != 200)) {
    co_return co_await keep_answer();
  }
  if (event_stream && x.request.skim.stream && !encoded) {
    co_return co_await relay_stream(*this);
  }
  co_return co_await relay_unary(*this);
}

backends::Task<End> Attempt::connect(bool idle_too) {
  if (idle_too) link = x.shard.upstream.take(static_cast<std::uint32_t>(start.endpoint));
  if (link && link->tls_server() != target->tls.get()) link.reset();  // of an earlier configuration
  reused_ = link != nullptr;
  if (reused_) co_return use_idle();
  const Time until = std::min(start.connect_by, start.end_by);
  const backends::ShareWaiter who{&x.shard, x.slot, x.shard.next_ticket(), !idle_too};
  share_ = target->connections->take_or_wait(who);
  if (!share_) {
    const End step = co_await await_share(who, until);
    if (step != End::ok || reused_) co_return step;
  }
  const auto addresses = target->addresses->get();
  const std::size_t count = addresses->size(), first = x.shard.next_address++;
  for (std::size_t i = 0; i < count; ++i) {
    // Each has an equal part of the time that is left: one that swallows attempts leaves some for the others.
    const Time now = x.shard.now();
    const Time give_up = until == never ? never : now + (until - now) / static_cast<std::int64_t>(count - i);
    link = backends::Link::dial(x.shard.loop, x.shard.buffers, (*addresses)[(first + i) % count], target->tls,
                                &x.shard.tickets);
    link->owner(&x.waker);
    while (link->connecting() && !interrupted() && x.shard.now() < give_up) co_await x.pause(give_up);
    if (link->connected()) {
      link->hold(std::move(share_));
      x.shard.counters.upstream_connections.add();
      co_return End::ok;
    }
    const auto why = interrupted();
    const bool ours = link->for_want_of_resources();
    note_handshake();
    link.reset();
    if (why) co_return *why;
    if (ours) co_return End::no_socket;
  }
  co_return End::connect;
}

End Attempt::use_idle() {
  link->owner(&x.waker);
  bytes_before_ = link->bytes_read();
  x.shard.counters.upstream_connections.add();
  return End::ok;
}

// At the cap: the next share or idle connection that anyone gives up. There is always one on the way, because no more
// requests are started than may have connections; that none comes is no fault of the backend's.
backends::Task<End> Attempt::await_share(backends::ShareWaiter who, Time until) {
  x.ticket = who.ticket;
  if (backends::LinkPtr own = x.shard.upstream.take(static_cast<std::uint32_t>(start.endpoint))) own.reset();
  x.shard.shared.ask_for_idle(x.shard.number, target);
  while (!x.moving && !interrupted() && x.shard.now() < until) co_await x.pause(until);
  if (!x.moving) {
    x.ticket = 0;
    target->connections->leave(who);
    co_return interrupted().value_or(End::no_socket);
  }
  const auto moving = std::exchange(x.moving, nullptr);
  if (!moving->connection()) {
    share_ = std::move(moving->share);
    co_return End::ok;
  }
  link = backends::Link::adopt(x.shard.loop, x.shard.buffers, *moving);
  reused_ = true;
  co_return use_idle();
}

// How a handshake failed, if one did: a word for the metric, the whole story for the log.
void Attempt::note_handshake() {
  const bool unfinished = link->connecting() && link->reached();
  if (!unfinished && link->tls_failure() == backends::TlsFailure::none) return;
  const auto why = unfinished ? backends::TlsFailure::timeout : link->tls_failure();
  x.shard.counters.upstream_tls_failures[static_cast<std::size_t>(why)].add();
  x.shard.warn_of_handshake(target->name, unfinished ? "no answer in time" : link->tls_failure_text());
}

backends::Task<End> Attempt::write_request() {
  std::array<backends::Piece, 2 + 2 * wire::Splice::edits_max> pieces;
  std::span<backends::Piece> left = write_request_pieces(x, *target, pieces);
  request_written_ = false;
  interims_ = 0;
  x.answer_reader.reset();
  for (;;) {
    const std::size_t n = link->write_some(left);
    if (link->write_failed()) co_return End::unsent;
    left = without_front(left, n);
    if (left.empty()) break;
    for (;;) {
      if (auto why = interrupted()) co_return *why;
      const Time until = std::min(start.first_byte_by, start.end_by);
      if (x.shard.now() >= until) co_return End::first_byte_late;
      const wire::Read answer = parse_head();
      if (answer == wire::Read::bad) co_return End::malformed;
      if (answer == wire::Read::complete) co_return End::ok;  // before the request was read: see what it says
      if (link->ended()) co_return link->in().empty() ? End::unsent : End::malformed;
      if (!room_for(head_max())) co_return End::malformed;
      link->arm();
      link->await_writable();
      if (!link->awaiting_writable()) break;
      co_await x.pause(until);
    }
  }
  request_written_ = true;
  co_return End::ok;
}

std::size_t Attempt::head_max() const { return x.request.catalog->options.limits.backend_head.count; }

// The final head, if it has come. Interim ones before it are swallowed.
wire::Read Attempt::parse_head() {
  for (;;) {
    backends::Buffer& in = link->in();
    const wire::Read read = in.empty() ? wire::Read::incomplete : x.answer_reader.response(in.view(), head);
    if (read != wire::Read::complete || head.status >= 200 || head.status == 101) return read;
    if (++interims_ > interim_max) return wire::Read::bad;
    in.consume(head.bytes);
  }
}

backends::Task<End> Attempt::read_head() {
  const bool stream = x.request.skim.stream;
  const Time until = std::min({start.first_byte_by, start.end_by, stream ? start.first_token_by : never});
  for (;;) {
    const wire::Read read = parse_head();
    const Time now = x.shard.now();
    if (read == wire::Read::bad) co_return End::malformed;
    if (read == wire::Read::complete) {
      head_at = now;
      co_return End::ok;
    }
    if (auto why = interrupted(now)) co_return *why;
    if (link->ended()) co_return link->in().empty() ? End::sent_no_answer : End::malformed;
    if (now >= until) {
      co_return stream&& start.first_token_by <= start.first_byte_by ? End::first_token_late : End::first_byte_late;
    }
    if (!room_for(head_max())) co_return End::malformed;
    link->arm();
    co_await x.pause(until);
  }
}

// Notes what the relays need, puts the lines that go on into x.relayed_lines, and takes the head off the buffer.
void Attempt::take_head() {
  const AnswerLines facts = copy_answer_lines(x.relayed_lines, head, *target);
  event_stream = facts.event_stream;
  json = facts.json;
  encoded = facts.encoded;
  retry_after_ = facts.retry_after;
  advice = facts.advice;
  keep_alive_ = head.keep_alive;
  const std::size_t bytes = head.bytes;
  body.start(head.framing, head.content_length, 0);
  link->in().consume(bytes);
  body.pull(link->in());
}

// An answer that fails the attempt: kept for the caller, in case no other comes.
backends::Task<bool> Attempt::keep_answer() {
  LastAnswer& last = x.request.last;
  last.status = head.status;
  last.presentable = false;
  last.advice = advice;
  while (!body_done() && !body_broken() && body.size() < kept_answer_max) {
    const Time until = std::min(after(x.shard.now(), start.idle), start.end_by);
    if (!room_for(kept_answer_max)) break;
    co_await more(until);
    if (interrupted() || x.shard.now() >= until) break;
  }
  if (x.abandoned()) co_return end(End::cancelled);
  if (body_done() && json && !encoded) {
    const std::string_view text = body.data(link->in());
    last.presentable = may_be_shown(text, *target) && wire::read_answer(text).json;
    if (last.presentable) {
      last.lines = x.relayed_lines;
      last.body.assign(text);
    }
  }
  end(End::status);
  body.consume(link->in(), body.size());
  give_back();
  co_return false;
}

}  // namespace headgate::gateway
