// One try of a request at one backend: connection, request, head, then the relay that fits the answer. Whatever
// happens, the Dispatcher hears of it exactly once: through end(), or the destructor.
#pragma once

#include <optional>
#include <utility>

#include "gateway/exchange.hpp"
#include "policies/outcome.hpp"

namespace headgate::gateway {

class Attempt {
 public:
  Attempt(Exchange& exchange, const policies::Start& order, std::shared_ptr<const config::Target> backend, Time now);
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt();

  // True: the caller has had its answer. False: the order that follows is in the exchange's inbox, or will come there.
  backends::Task<bool> run();

  // For the relays. What comes from the backend is in link->in(), its head already taken off; body marks the rest.
  Exchange& x;
  const policies::Start start;
  const std::shared_ptr<const config::Target> target;
  backends::LinkPtr link;
  wire::ResponseHead head;  // of its views only until the relay begins
  backends::BodyReader body;
  Time head_at{};
  bool event_stream = false, json = false, encoded = false;
  bool overloaded = false;  // an in-band error said so
  std::string advice;       // lines of an error's head that go on whatever becomes of its body

  // Why it can't go on, if so: the caller left, the host stops, the time is up.
  std::optional<policies::End> interrupted(Time now) const;
  std::optional<policies::End> interrupted() const { return interrupted(x.shard.now()); }
  // Waits for bytes, the end or `until`; then takes framing off what came.
  auto more(Time until) {
    struct More {
      decltype(std::declval<Exchange&>().pause(never)) event;
      Attempt& attempt;
      bool await_ready() const { return event.await_ready(); }
      void await_suspend(std::coroutine_handle<> waiting) const { event.await_suspend(waiting); }
      void await_resume() const { attempt.body.pull(attempt.link->in()); }
    };
    link->arm();
    return More{x.pause(until), *this};
  }
  // A body's bytes have all come, or it ended at the connection's end as it may.
  bool body_done() const { return body.done() || (body.ends_at_eof() && link->ended() && link->clean_end()); }
  bool body_broken() const { return body.bad() || (!body_done() && link->ended()); }
  bool room_for(std::size_t bytes_max);  // makes room to read on; false: that much is held already

  // Tells the Dispatcher. Always false, for `co_return end(..)`. The connection is closed unless the answer was whole.
  bool end(policies::End how);
  void succeed();  // the same for a complete answer; the caller gets it afterwards
  // The connection, if it can serve again. What came on it stays in received(), for a caller who takes his time.
  void give_back();
  backends::Buffer& received() { return link ? link->in() : kept_; }

 private:
  backends::Task<policies::End> connect(bool idle_too);
  policies::End use_idle();
  backends::Task<policies::End> await_share(backends::ShareWaiter who, Time until);
  void note_handshake();
  backends::Task<policies::End> write_request();
  backends::Task<policies::End> read_head();
  backends::Task<bool> keep_answer();
  void take_head();
  wire::Read parse_head();
  std::size_t head_max() const;

  PassedLimit passed_limit(policies::End how) const;

  const Time started_at_;
  backends::Buffer kept_;
  backends::ConnectionShare share_;  // until there is a connection that holds it
  bool ended_ = false, reused_ = false, request_written_ = false, keep_alive_ = false;
  int interims_ = 0;                // 1xx heads swallowed
  std::uint64_t bytes_before_ = 0;  // read on this connection before this request
  Nanos retry_after_{-1};
};

// The relays: true when the caller has had its answer.
backends::Task<bool> relay_unary(Attempt& a);
backends::Task<bool> relay_stream(Attempt& a);

}  // namespace headgate::gateway
