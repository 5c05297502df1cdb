// One worker thread and everything that belongs to it: event loop, listener, callers, upstream connections, buffers,
// deadlines, counters, log lines. A connection never changes shard; other threads only post().
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backends/connection_cap.hpp"
#include "backends/io/listener.hpp"
#include "backends/io/tls_context.hpp"
#include "backends/io/wheel.hpp"
#include "backends/upstream_pool.hpp"
#include "backends/wire/json_skim.hpp"
#include "config/catalog.hpp"
#include "gateway/access_log.hpp"
#include "gateway/address_counts.hpp"
#include "gateway/body_memory.hpp"
#include "gateway/dispatch_host.hpp"
#include "gateway/keys.hpp"
#include "gateway/metric_list.hpp"
#include "policies/base/random.hpp"
#include "policies/gap_book.hpp"

namespace headgate::gateway {

struct Exchange;

// What the shards share.
struct Shared {
  DispatchHost& host;
  AccessLog& access_log;
  BodyMemory& bodies;
  std::atomic<bool>& draining;
  std::atomic<std::uint32_t>& connections;  // of callers
  AddressCounts& addresses;
  std::function<bool()> ready;
  std::function<void(std::uint16_t asking, std::shared_ptr<const config::Target>)> ask_for_idle;  // of the other shards
};

class Shard final : public OrderPort, public backends::ShareTaker {
 public:
  Shard(std::uint16_t number, Shared shared, std::shared_ptr<const config::Catalog> catalog);
  ~Shard();

  // Before run(): a bound, listening socket.
  void listen(int fd);
  void run();  // until the last connection is gone after stop_listening()

  // Any thread.
  void post(Delivery delivery) override;
  void share_freed(std::uint32_t slot, std::uint64_t ticket, backends::ConnectionShare share) override;
  void give_up_idle(std::shared_ptr<const config::Target> target);  // to requests that wait at its cap
  void use(std::shared_ptr<const config::Catalog> catalog);
  void stop_listening();  // no new connections; idle ones are closed, the others after their answer
  void cut_all();         // what still runs ends now: one error event for streams, 503 for the rest

  // The shard's own thread.
  Time now() const { return std::chrono::steady_clock::now(); }
  // For log lines: looked at with each flush, so that a line costs no look of its own.
  std::chrono::system_clock::time_point wall_clock(Time at) const { return wall_looked_at_ + (at - looked_at_); }
  std::uint32_t enroll(Exchange& exchange);
  void leave(std::uint32_t slot);
  const std::shared_ptr<const config::Catalog>& catalog() const { return catalog_; }
  void warn_of_handshake(std::string_view backend, std::string_view why);  // now and then
  std::uint64_t next_id_bits() { return draw(id_seed_, number, ++ids_made_); }
  // Advice where nobody knows when what is missing is given back: 1 to 1.5 s, so that those who are sent away do not
  // come back together.
  Nanos come_back_in() { return Nanos(1'000'000'000 + static_cast<std::int64_t>(unit(next_id_bits()) * 5e8)); }
  void lend_idle(const config::Target& target);  // the same, here and now
  std::uint64_t next_ticket() { return ++tickets_drawn_; }
  bool draining() const { return shared.draining.load(std::memory_order_relaxed); }

  const std::uint16_t number;
  Shared shared;
  backends::Loop loop;
  backends::LoopWheel wheel{loop};
  backends::BufferPool buffers;
  backends::TlsTickets tickets;  // of https backends
  std::size_t next_address = 0;  // of a backend with several: where the next dial begins
  backends::UpstreamPool upstream;
  ShardCounters counters;
  policies::GapBook gaps;  // between the contents of streams; reported ten times a second
  KeyRing keys;
  AccessLines lines;
  wire::Skimmer skimmer;
  std::optional<policies::RouteId> full_route;  // the last request that came here for it found its queue full
  std::uint64_t cut_at_stop = 0;                // requests ended by cut_all(); read after run()

 private:
  void accepted(int fd, const backends::IpAddress& from);
  void accepting_paused(int error);
  bool said_lately(Time& at);
  void deliver(Delivery delivery);
  void move_here(std::uint32_t slot, std::uint64_t ticket, std::shared_ptr<backends::Link::Moving> moving);
  void flush_lines();
  void look_at_clocks();
  void close_if_empty();

  std::shared_ptr<const config::Catalog> catalog_;
  std::unique_ptr<backends::Listener> listener_;
  std::vector<Exchange*> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t connections_ = 0;
  backends::Alarm flusher_;
  bool stopping_ = false;
  Time looked_at_{};
  std::chrono::system_clock::time_point wall_looked_at_{};
  Time paused_said_at_{}, handshake_said_at_{};
  std::uint64_t tickets_drawn_ = 0;
  std::uint64_t id_seed_, ids_made_ = 0;  // request ids: unlike those of other shards and earlier processes
};

}  // namespace headgate::gateway
