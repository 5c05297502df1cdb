#include "gateway/exchange.hpp"

#include <algorithm>

namespace headgate::gateway {

std::span<backends::Piece> without_front(std::span<backends::Piece> pieces, std::size_t n) {
  while (!pieces.empty() && n >= pieces.front().size()) {
    n -= pieces.front().size();
    pieces = pieces.subspan(1);
  }
  if (!pieces.empty()) pieces.front() += n;
  return pieces;
}

bool Exchange::send_now(std::span<backends::Piece>& pieces) {
  const std::size_t n = caller->write_some(pieces);
  request.bytes_out += n;
  pieces = without_front(pieces, n);
  return pieces.empty() && !caller->unsent() && !caller->write_failed();
}

backends::Task<bool> Exchange::send(std::span<backends::Piece> pieces, Time until) {
  if (send_now(pieces)) return backends::Task<bool>::over(true);
  return send_waiting(pieces, until);
}

backends::Task<bool> Exchange::send_waiting(std::span<backends::Piece> pieces, Time until) {
  const Nanos stall = shard.catalog()->options.limits.write_stall;
  for (;;) {
    if (caller->write_failed() || abandoned()) co_return false;
    const Time give_up = std::min(after(shard.now(), stall), until);
    caller->await_writable();
    while (caller->awaiting_writable()) {
      if (abandoned() || shard.now() >= until) co_return false;
      if (shard.now() >= give_up) {
        shard.counters.closed(ClosedByUs::write_stall);
        co_return false;
      }
      co_await pause(give_up);
    }
    if (send_now(pieces)) co_return true;
  }
}

}  // namespace headgate::gateway
