#include "gateway/connection.hpp"

#include "backends/io/tls_session.hpp"
#include "gateway/exchange.hpp"
#include "gateway/intake.hpp"
#include "gateway/pipeline.hpp"

namespace headgate::gateway {

namespace {

// Of a TLS listener; in plain it is over at once. False: there is nobody to serve.
backends::Task<bool> shake_hands(Exchange& x) {
  backends::Link& caller = *x.caller;
  const Time until = after(x.shard.now(), x.shard.catalog()->options.limits.head_time);
  while (caller.connecting() && !x.stopping && x.shard.now() < until) co_await x.pause(until);
  if (caller.connected() && caller.tls_failure() == backends::TlsFailure::none) co_return true;
  const backends::TlsFailure why = caller.connecting() ? backends::TlsFailure::timeout : caller.tls_failure();
  x.shard.counters.tls_failures[static_cast<std::size_t>(why)].add();
  if (why == backends::TlsFailure::plain_http) {
    const RefusalAnswer no{.refusal = Refusal::tls_required};
    co_await reject(x, no);
  }
  co_return false;
}

}  // namespace

backends::Task<> serve_connection(Shard& shard, backends::LinkPtr link, Peer peer) {
  Exchange x(shard, std::move(link), std::move(peer));
  if (x.caller->connecting()) {
    const bool greeted = co_await shake_hands(x);
    if (!greeted) co_return;
    x.idle_since = shard.now();
  }
  for (;;) {
    const bool arrived = co_await read_head(x);
    if (!arrived) break;
    x.idle = false;
    co_await serve_request(x);
    if (x.close_after || x.caller->ended() || x.caller->write_failed() || shard.draining()) break;
    x.caller->in().consume(x.head.bytes + x.body.size());
    x.reader.reset();
    for (std::string* text : {&x.out, &x.upstream_head, &x.relayed_lines}) shed(*text);
    x.idle = true;
  }
  x.caller->shut_down();
}

}  // namespace headgate::gateway
