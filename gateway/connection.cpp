#include "gateway/connection.hpp"

#include "gateway/exchange.hpp"
#include "gateway/intake.hpp"
#include "gateway/pipeline.hpp"

namespace headgate::gateway {

backends::Task<> serve_connection(Shard& shard, backends::LinkPtr link) {
  Exchange x(shard, std::move(link));
  for (;;) {
    const bool arrived = co_await read_head(x);
    if (!arrived) break;
    x.idle = false;
    co_await serve_request(x);
    if (x.close_after || x.caller->ended() || x.caller->write_failed() || shard.draining()) break;
    x.caller->in().consume(x.head.bytes + x.body.size());
    x.reader.reset();
    RequestState& r = x.request;
    for (std::string* text :
         {&x.out, &x.upstream_head, &x.relayed_lines, &r.last.lines, &r.last.body, &r.cause_detail}) {
      shed(*text);
    }
    x.idle = true;
  }
  x.caller->shut_down();
}

}  // namespace headgate::gateway
