// An answer in one piece. It commits when it is complete, or at 256 KiB: until then its failure can still be hidden by
// another backend; from there on a success passes through as it comes.
#include <algorithm>
#include <array>

#include "backends/wire/sse_scan.hpp"
#include "gateway/attempt.hpp"
#include "gateway/conclude.hpp"
#include "gateway/heads.hpp"
#include "gateway/json_text.hpp"
#include "policies/base/tokens.hpp"

namespace headgate::gateway {

using policies::End;

namespace {

constexpr std::size_t commit_at = 256 << 10;
constexpr std::size_t read_ahead = 32 << 10;

// What a wait for the next bytes of the body ended in.
std::optional<End> trouble(const Attempt& a, Time idle_until) {
  if (auto why = a.interrupted()) return why;
  if (a.body_broken()) return a.body.bad() ? End::malformed : End::truncated;
  if (a.x.shard.now() >= idle_until) return End::stalled;
  return std::nullopt;
}

void count_tokens(RequestState& r, const wire::AnswerFacts& facts, std::size_t bytes) {
  r.usage_reported = facts.usage;
  r.input_tokens = facts.usage ? facts.tokens.input : estimate_tokens(r.skim.text_bytes);
  r.output_tokens = facts.usage ? facts.tokens.output : estimate_tokens(bytes);
  r.cached_tokens = facts.tokens.cached;
}

// What the answer cost at the pool's price, when it has one.
void append_cost_line(std::string& out, const RequestState& r, const config::PriceOptions& price) {
  if (price.input == 0 && price.cached == 0 && price.output == 0) return;
  const double uncached =
      static_cast<double>(r.input_tokens) - static_cast<double>(std::min(r.cached_tokens, r.input_tokens));
  const double per_million = uncached * price.input + r.cached_tokens * price.cached + r.output_tokens * price.output;
  out.append("x-headgate-cost-usd: ");
  append_usd(out, per_million / 1e6);
  out.append("\r\n");
}

// An error that names the backend, or is too long to be searched for that: the caller gets its status.
backends::Task<bool> deliver_status(Attempt& a) {
  a.succeed();
  a.give_back();
  RefusalAnswer fixed{.refusal = Refusal::upstream_status, .status = a.head.status, .more_head = a.advice};
  co_await answer_ourselves(a.x, fixed);
  co_return true;
}

// The whole answer is here: judge it, free the backend, send it.
backends::Task<bool> deliver_whole(Attempt& a) {
  Exchange& x = a.x;
  const std::string_view text = a.body.data(a.link->in());
  wire::AnswerFacts facts;
  if (!a.encoded) facts = wire::read_answer(text);
  const bool success = a.head.status == 200;
  if (success && a.json && !a.encoded && !facts.json) co_return a.end(End::malformed);
  if (success && facts.error) {
    a.overloaded = facts.overloaded;
    co_return a.end(End::in_band_error);
  }
  if (success) count_tokens(x.request, facts, text.size());
  if (!success && !may_be_shown(text, *a.target)) co_return co_await deliver_status(a);
  a.succeed();
  a.give_back();  // while its caller takes the answer it serves others; the text stays where it is
  write_answer_head(x, a.head.status, "");
  x.out.resize(x.out.size() - 2);
  x.out.append("Content-Length: ");
  append_number(x.out, text.size());
  x.out.append("\r\n");
  if (success) append_cost_line(x.out, x.request, a.target->price);
  x.out.append("\r\n");
  x.request.finished = true;
  std::array<backends::Piece, 2> pieces{boost::asio::buffer(x.out), boost::asio::buffer(text)};
  const bool sent = co_await x.send(pieces);
  if (!sent) x.close_after = true;
  co_return true;
}

// Too big to hold, or a stream that cannot be read: head first, then the body as it comes.
backends::Task<bool> pass_through(Attempt& a) {
  Exchange& x = a.x;
  x.shard.shared.host.first_token(a.start.attempt);
  const bool sized = a.head.framing == wire::Framing::length && !a.event_stream;
  const bool chunked = !sized && x.head.minor >= 1;
  if (!sized && !chunked) x.close_after = true;
  std::string framing;
  if (sized) {
    framing.assign("Content-Length: ");
    append_number(framing, a.head.content_length);
    framing.append("\r\n");
  } else if (chunked) {
    framing = "Transfer-Encoding: chunked\r\n";
  }
  write_answer_head(x, a.head.status, framing);
  x.request.head_sent = true;
  x.request.status = a.head.status;
  std::uint64_t relayed = 0;
  Time idle_until = after(x.shard.now(), a.start.idle);
  for (;;) {
    const std::string_view text = a.body.data(a.link->in());
    const bool last = a.body_done();
    if (chunked && !text.empty()) append_chunk_size(x.out, text.size());
    const std::string_view behind = !chunked       ? ""
                                    : text.empty() ? (last ? "0\r\n\r\n" : "")
                                                   : (last ? "\r\n0\r\n\r\n" : "\r\n");
    std::array<backends::Piece, 3> pieces{boost::asio::buffer(x.out), boost::asio::buffer(text),
                                          boost::asio::buffer(behind)};
    const bool sent = co_await x.send(pieces, a.start.end_by);
    x.out.clear();
    if (!sent) co_return a.end(End::cancelled);
    relayed += text.size();
    a.body.consume(a.link->in(), text.size());
    if (last) break;
    idle_until = after(x.shard.now(), a.start.idle);
    while (a.body.size() == 0 && !a.body_done()) {
      if (auto why = trouble(a, idle_until)) co_return a.end(*why);
      co_await a.more(std::min(idle_until, a.start.end_by));
    }
  }
  if (a.head.status == 200) count_tokens(x.request, {}, static_cast<std::size_t>(relayed));
  a.succeed();
  x.request.finished = true;
  a.give_back();
  co_return true;
}

}  // namespace

backends::Task<bool> relay_unary(Attempt& a) {
  Time idle_until = after(a.head_at, a.start.idle);
  if (a.head.framing == wire::Framing::length && a.head.content_length <= commit_at && !a.body.done()) {
    a.link->in().reserve(static_cast<std::size_t>(a.head.content_length) - a.body.size());
  }
  std::uint64_t seen = a.link->bytes_read();
  if (a.event_stream && a.x.request.skim.stream) co_return co_await pass_through(a);
  while (!a.body_done()) {
    if (auto why = trouble(a, idle_until)) co_return a.end(*why);
    if (a.body.size() >= commit_at || !a.room_for(commit_at + read_ahead)) {
      if (a.head.status != 200) co_return co_await deliver_status(a);
      co_return co_await pass_through(a);
    }
    co_await a.more(std::min(idle_until, a.start.end_by));
    if (a.link->bytes_read() != seen) idle_until = after(a.x.shard.now(), a.start.idle);
    seen = a.link->bytes_read();
  }
  co_return co_await deliver_whole(a);
}

}  // namespace headgate::gateway
