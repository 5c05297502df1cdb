#include "gateway/intake.hpp"

#include <algorithm>
#include <memory>

#include "gateway/client_address.hpp"
#include "gateway/conclude.hpp"
#include "gateway/cors.hpp"
#include "gateway/request_head.hpp"
#include "gateway/request_log.hpp"
#include "policies/base/tokens.hpp"

namespace headgate::gateway {

namespace {

constexpr std::size_t body_step = 64 << 10;        // a chunked body's buffer and hold grow by this
constexpr std::size_t watch_room = 512;            // kept free behind a body, so that a departure is noticed
constexpr std::size_t unread_kept_max = 64 << 10;  // a refused body up to this is read and the connection kept
constexpr std::size_t unread_taken_max = 16 << 20;
constexpr Nanos linger = std::chrono::seconds(5);
constexpr Nanos rate_grace = std::chrono::seconds(20);

const config::LimitOptions& limits(const Exchange& x) { return x.shard.catalog()->options.limits; }

RefusalAnswer wire_error(wire::HeadError error) {
  const bool version = error == wire::HeadError::version;
  return {.refusal = version ? Refusal::version_not_supported : Refusal::bad_request, .detail = wire::describe(error)};
}

// Room for a body of that size, or the refusal.
std::optional<RefusalAnswer> hold(Exchange& x, std::uint64_t bytes) {
  const BodyMemory::Grown grown = x.body_hold.grow_to(bytes);
  if (grown == BodyMemory::Grown::yes) return std::nullopt;
  const bool key = grown == BodyMemory::Grown::key_has_its_part;
  const std::uint64_t left = key ? x.body_hold.key_left() : x.shard.shared.bodies.left();
  return RefusalAnswer{.refusal = key ? Refusal::bodies_per_key : Refusal::memory,
                       .value = static_cast<std::int64_t>(bytes),
                       .limit = static_cast<std::int64_t>(left),
                       .retry_after = x.shard.come_back_in(),
                       .repeat_ok = !x.request.budgets.repeat};
}

RefusalAnswer too_slow(Refusal which, std::string_view how, Nanos value, Nanos limit) {
  constexpr auto ms = std::chrono::milliseconds(1);
  return {.refusal = which, .detail = how, .value = value / ms, .limit = limit / ms};
}

// Path and query of a target that names its server too, as a proxy is asked (RFC 9112 3.2.2).
std::string_view origin_form(std::string_view target) {
  const std::size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == std::string_view::npos) return target;
  const std::size_t path = target.find_first_of("/?", scheme + 3);
  return path == std::string_view::npos ? "/" : target.substr(path);
}

wire::Read parse_head(Exchange& x) {
  const wire::Read read = x.reader.request(x.caller->in().view(), x.head);
  if (read == wire::Read::complete) x.head.target = origin_form(x.head.target);
  return read;
}

// Reads the head again after the buffer has moved; it was complete before.
void reread_head(Exchange& x) {
  x.reader.reset();
  parse_head(x);
}

// Room for `wanted` bytes in all behind the buffer's begin, and some to notice a departure.
void make_room(Exchange& x, std::size_t wanted) {
  backends::Buffer& in = x.caller->in();
  const char* before = in.data();
  if (wanted + watch_room > in.size()) in.reserve(wanted + watch_room - in.size());
  if (in.data() != before) reread_head(x);
}

// For what has come of the body.
std::optional<RefusalAnswer> refuse_body(Exchange& x) {
  if (x.body.bad()) {
    x.close_after = true;
    return RefusalAnswer{.refusal = Refusal::bad_request, .detail = "broken chunk in the body"};
  }
  const std::uint64_t body_max = limits(x).body.count;
  if (x.body.size() <= body_max) return std::nullopt;
  return RefusalAnswer{.refusal = Refusal::body_too_large,
                       .value = static_cast<std::int64_t>(x.body.size()),
                       .limit = static_cast<std::int64_t>(body_max)};
}

BodyRead await_body(Exchange& x) {
  backends::Buffer& in = x.caller->in();
  const config::LimitOptions& limit = limits(x);
  const Time began = x.shard.now();
  if (x.head.framing == wire::Framing::length)
    make_room(x, x.head.bytes + static_cast<std::size_t>(x.head.content_length));
  if (x.head.expect_continue && x.body.size() == 0) {
    static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    std::array<backends::Piece, 1> pieces{boost::asio::buffer(go_on)};
    co_await x.send(pieces);
  }
  Time last_byte = began;
  std::uint64_t seen = x.caller->bytes_read();
  for (;;) {
    if (x.abandoned()) {
      if (!x.stopping) note_cancelled(x);
      co_return RefusalAnswer{.refusal = Refusal::shutting_down, .repeat_ok = !x.request.budgets.repeat};
    }
    const Time now = x.shard.now();
    if (x.caller->bytes_read() != seen) last_byte = now;
    seen = x.caller->bytes_read();
    const auto slowest =
        static_cast<std::int64_t>(x.body.total() / std::max<std::uint64_t>(limit.body_rate_min.count, 1));
    const Nanos total_max = rate_grace + std::chrono::seconds(slowest);
    const Time until = std::min(after(last_byte, limit.body_idle), after(began, total_max));
    if (now >= until) {
      x.close_after = true;
      const bool silent = now >= after(last_byte, limit.body_idle);
      co_return silent ? too_slow(Refusal::body_timeout, "silent", now - last_byte, limit.body_idle)
                       : too_slow(Refusal::body_timeout, "under way", now - began, total_max);
    }
    if (x.head.framing == wire::Framing::chunked && in.room() < watch_room) {
      if (auto no = hold(x, x.body.size() + body_step)) co_return no;
      make_room(x, in.size() + std::max(body_step, x.body.size()));
    }
    co_await x.pause(until);
    x.body.pull(in);
    if (auto no = refuse_body(x)) co_return no;
    if (x.body.done()) co_return std::nullopt;
  }
}

backends::Task<> take_rest_in(Exchange& x) {
  backends::Buffer& in = x.caller->in();
  const bool keep =
      x.head.framing == wire::Framing::length && x.head.content_length <= unread_kept_max && !x.close_after;
  if (!keep) {
    x.close_after = true;
    x.caller->shut_down();
  }
  const Time until = after(x.shard.now(), keep ? std::min(linger, limits(x).body_idle) : linger);
  const std::uint64_t first = x.caller->bytes_read();
  // The head is not needed any more: what comes is dropped as it comes.
  while (!x.body.done() && !x.body.bad() && !x.abandoned() && x.shard.now() < until &&
         x.caller->bytes_read() - first < unread_taken_max) {
    x.body.pull(in);
    if (x.body.done()) break;
    if (keep && in.room() == 0) in.reserve(in.size());
    if (!keep) {
      in.consume(in.size());
      x.body.start(wire::Framing::until_close, 0, 0);
    }
    co_await x.pause(until);
  }
  x.idle_since = x.shard.now();
  if (x.body.done()) co_return;
  x.close_after = true;
  if (!x.abandoned()) x.shard.counters.closed(ClosedByUs::unread_body);
}

// While a queue stays full, its callers are told before their bodies are checked: saying no must stay cheap.
std::optional<RefusalAnswer> turn_away(Exchange& x, std::string_view body) {
  RequestState& r = x.request;
  const auto found = r.catalog->routes.find(wire::leading_model(body));
  if (found == r.catalog->routes.end() || found->second.id != x.shard.full_route) return std::nullopt;
  if (!r.caller.identity.may_use(found->second.id)) return std::nullopt;
  const Nanos timeout = std::min(r.budgets.timeout, r.budgets.read_timeout);
  const auto no = x.shard.shared.host.turn_away({.route = found->second.id,
                                                 .body_bytes = body.size(),
                                                 .tenant = r.caller.identity.tenant(),
                                                 .klass = r.budgets.klass,
                                                 .repeat = r.budgets.repeat,
                                                 .received = r.received,
                                                 .deadline = std::min(r.budgets.deadline, after(r.received, timeout)),
                                                 .content_by = r.budgets.content_by,
                                                 .max_cost_usd = r.budgets.max_cost_usd,
                                                 .min_quality = r.budgets.min_quality});
  if (!no) {
    x.shard.full_route.reset();
    return std::nullopt;
  }
  r.route = &found->second;
  r.arrived = no->at;
  return refusal_for(no->answer);
}

std::uint32_t choices(const wire::Skim& skim) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::max(skim.n, skim.best_of), 1, 1000));
}

std::uint32_t most_output(const wire::Skim& skim) {  // of all choices; 0: unsaid
  const std::uint64_t each = std::min<std::uint64_t>(skim.max_tokens.value_or(0), 1'000'000);
  return static_cast<std::uint32_t>(each * choices(skim));
}

}  // namespace

backends::Task<> reject(Exchange& x, RefusalAnswer no) {
  RequestState& r = x.request;
  x.head = {};  // nothing of it can be trusted, nor shown
  r.catalog = x.shard.catalog();
  if (r.received == Time()) r.received = x.shard.now();
  choose_request_id(x);
  find_client(x);
  no.request_id = x.request_id;
  x.out.clear();
  append_refusal_head(x.out, no);
  x.out.append("Connection: close\r\n");
  append_refusal_body(x.out, no);
  x.shard.counters.refused(no.refusal);
  const RefusalRow& row = row_of(no.refusal);
  r.ending = row.ending;
  r.cause = row.code;
  r.status = no.status != 0 ? no.status : row.status;
  std::array<backends::Piece, 1> pieces{boost::asio::buffer(x.out)};
  co_await x.send(pieces);
  record_request(x, x.shard.now());
  x.head.framing = wire::Framing::until_close;  // whatever follows is read off and dropped
  x.body.start(wire::Framing::until_close, 0, 0);
  co_await leave_body(x);
}

backends::Task<bool> read_head(Exchange& x) {
  backends::Buffer& in = x.caller->in();
  Time now = x.idle_since;
  const Time idle_until = after(now, limits(x).keep_alive);
  std::destroy_at(&x.request);
  std::construct_at(&x.request);
  for (;; now = x.shard.now()) {
    while (in.view().starts_with("\r\n")) in.consume(2);  // before a request: RFC 9112 2.2
    const bool begun = !in.empty() && in.view() != "\r";
    if (begun && x.request.received == Time()) x.request.received = now;
    const wire::Read read = begun ? parse_head(x) : wire::Read::incomplete;
    const std::size_t head_max = limits(x).head.count;
    if (read == wire::Read::bad) {
      co_await reject(x, wire_error(x.reader.error()));
      co_return false;
    }
    if ((read == wire::Read::complete ? x.head.bytes : in.size()) > head_max) {
      RefusalAnswer no{.refusal = Refusal::headers_too_large,
                       .value = static_cast<std::int64_t>(in.size()),
                       .limit = static_cast<std::int64_t>(head_max)};
      co_await reject(x, no);
      co_return false;
    }
    if (read == wire::Read::complete) co_return true;
    if (x.caller->ended() || x.stopping || (!begun && x.shard.draining())) co_return false;
    const Time until = begun ? after(x.request.received, limits(x).head_time) : idle_until;
    if (now >= until) {
      if (begun) {
        RefusalAnswer no = too_slow(Refusal::head_timeout, {}, now - x.request.received, limits(x).head_time);
        co_await reject(x, no);
      } else {
        x.shard.counters.closed(ClosedByUs::idle);
      }
      co_return false;
    }
    if (begun && in.room() == 0) in.reserve(in.size());
    co_await x.pause(until);
  }
}

std::optional<RefusalAnswer> check_head(Exchange& x) {
  RequestState& r = x.request;
  r.catalog = x.shard.catalog();
  x.close_after = !x.head.keep_alive || x.shard.draining();
  x.body.start(x.head.framing, x.head.content_length, x.head.bytes);
  x.body.pull(x.caller->in());
  choose_request_id(x);
  find_client(x);
  find_origin(x);
  if (auto no = find_operation(x)) return no;
  if (r.operation >= Operation::preflight) return std::nullopt;  // needs no key
  r.caller = x.shard.keys.identify(x.head.fields, *r.catalog, x.key_memo);
  if (!r.caller.ok()) return r.caller.refusal();
  if (auto no = read_budgets(x)) return no;
  const std::uint64_t body_max = limits(x).body.count;
  if (x.head.content_length > body_max) {
    return RefusalAnswer{.refusal = Refusal::body_too_large,
                         .value = static_cast<std::int64_t>(x.head.content_length),
                         .limit = static_cast<std::int64_t>(body_max)};
  }
  return std::nullopt;
}

BodyRead read_body(Exchange& x) {
  BodyBytes* const of_key = x.request.caller.identity.body_bytes();
  x.body_hold.belongs_to(of_key != nullptr ? *of_key : x.shard.shared.bodies.anonymous,
                         x.request.catalog->options.limits.bodies_per_key->count);
  if (x.head.framing == wire::Framing::length) {
    if (auto no = hold(x, x.head.content_length)) return BodyRead::over(no);
  }
  if (auto no = refuse_body(x)) return BodyRead::over(no);
  if (x.body.done()) return BodyRead::over();  // most have come with their head
  return await_body(x);
}

backends::Task<> leave_body(Exchange& x) { return x.body.done() ? backends::Task<>::over() : take_rest_in(x); }

std::optional<RefusalAnswer> check_body(Exchange& x, policies::Arrival& arrival) {
  RequestState& r = x.request;
  const std::string_view text = x.body_text();
  if (x.shard.full_route) {
    if (auto no = turn_away(x, text)) return no;
  }
  if (x.shard.skimmer.skim(text, r.skim) != wire::SkimError::none) {
    r.cause_detail = std::string(x.shard.skimmer.problem());
    return RefusalAnswer{.refusal = Refusal::invalid_body, .detail = r.cause_detail};
  }
  const std::string_view model = r.skim.model;
  const auto& routes = r.catalog->routes;
  const auto found = model.size() <= wire::name_bytes_max ? routes.find(model) : routes.end();
  if (found == routes.end()) return RefusalAnswer{.refusal = Refusal::model_not_found, .detail = model};
  if (!r.caller.identity.may_use(found->second.id))
    return RefusalAnswer{.refusal = Refusal::model_not_allowed, .detail = model};
  r.route = &found->second;
  r.skim.model = r.route->name;  // the skimmer is shared by the shard
  const bool stream = r.skim.stream && r.operation != Operation::embeddings;
  r.skim.stream = stream;
  arrival = {.owner = x.owner(),
             .route = r.route->id,
             .body_bytes = text.size(),
             .tenant = r.caller.identity.tenant(),
             .klass = r.budgets.klass,
             .prompt_tokens = estimate_tokens(r.skim.text_bytes),
             .max_output_tokens = most_output(r.skim),
             .choices = r.operation == Operation::embeddings ? 0 : choices(r.skim),
             .stream = stream,
             .repeat = r.budgets.repeat,
             .received = r.received,
             .deadline = r.budgets.deadline,
             .content_by = r.budgets.content_by,
             .max_cost_usd = r.budgets.max_cost_usd,
             .min_quality = r.budgets.min_quality};
  const Nanos read_timeout = r.budgets.read_timeout, timeout = std::min(r.budgets.timeout, read_timeout);
  if (stream) {
    arrival.head_within = timeout;
    arrival.idle_within = read_timeout;
  } else if (timeout != Nanos::max()) {
    arrival.deadline = std::min(arrival.deadline, after(r.received, timeout));
  }
  return std::nullopt;
}

}  // namespace headgate::gateway
