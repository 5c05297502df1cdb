#include "gateway/shard.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "gateway/connection.hpp"
#include "gateway/exchange.hpp"

namespace headgate::gateway {

namespace {
constexpr Nanos flush_every = std::chrono::milliseconds(100);
constexpr Nanos said_again_after = std::chrono::seconds(10);

backends::UpstreamPoolOptions pool_options(const config::Catalog& catalog) {
  return {.idle = catalog.options.upstream.idle, .idle_max = catalog.options.upstream.idle_max};
}
}  // namespace

Shard::Shard(std::uint16_t number_, Shared shared_, std::shared_ptr<const config::Catalog> catalog)
    : number(number_),
      shared(std::move(shared_)),
      upstream(wheel, pool_options(*catalog)),
      lines(shared.access_log),
      catalog_(std::move(catalog)),
      flusher_(wheel, [this] { flush_lines(); }),
      id_seed_(static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())) {}

Shard::~Shard() = default;

void Shard::listen(int fd) {
  listener_ = std::make_unique<backends::Listener>(
      loop, fd, [this](int connection, const backends::IpAddress& from) { accepted(connection, from); },
      [this](int error) { accepting_paused(error); });
}

void Shard::run() {
  look_at_clocks();
  flusher_.set(looked_at_ + flush_every);
  loop.run();
  lines.flush();
}

void Shard::accepted(int fd, const backends::IpAddress& from) {
  const config::ListenOptions& limits = catalog_->options.listen;
  const auto& trusted = catalog_->trusted_proxies;
  const bool proxy = std::any_of(trusted.begin(), trusted.end(),
                                 [&](const config::Network& network) { return network.contains(from); });
  const bool counted = limits.connections_per_address && !proxy;
  const bool room = shared.connections.fetch_add(1, std::memory_order_relaxed) < limits.connections_max;
  if (!room || (counted && !shared.addresses.enter(from, *limits.connections_per_address))) {
    shared.connections.fetch_sub(1, std::memory_order_relaxed);
    (room ? counters.connections_refused_by_address : counters.connections_refused).add();
    ::close(fd);
    return;
  }
  ++connections_;
  counters.caller_connections.add();
  Peer peer{from, from.text()};
  auto link = backends::Link::adopt(loop, buffers, fd, catalog_->certificate);
  backends::spawn(serve_connection(*this, std::move(link), std::move(peer)), [this, from, counted] {
    if (counted) shared.addresses.leave(from);
    --connections_;
    shared.connections.fetch_sub(1, std::memory_order_relaxed);
    counters.caller_connections.sub();
    if (listener_) listener_->descriptor_freed();
    close_if_empty();
  });
}

// What is counted each time is said once in a while.
bool Shard::said_lately(Time& at) {
  const Time time = now();
  if (at != Time() && time < after(at, said_again_after)) return true;
  at = time;
  return false;
}

void Shard::accepting_paused(int error) {
  counters.accept_pauses.add();
  if (said_lately(paused_said_at_)) return;
  spdlog::warn("accepting pauses, new callers wait: {}", std::system_category().message(error));
}

void Shard::warn_of_handshake(std::string_view backend, std::string_view why) {
  if (said_lately(handshake_said_at_)) return;
  spdlog::warn("{}: TLS: {}", backend, why);
}

std::uint32_t Shard::enroll(Exchange& exchange) {
  if (free_slots_.empty()) {
    slots_.push_back(&exchange);
    return static_cast<std::uint32_t>(slots_.size() - 1);
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[slot] = &exchange;
  return slot;
}

void Shard::leave(std::uint32_t slot) {
  slots_[slot] = nullptr;
  free_slots_.push_back(slot);
}

void Shard::post(Delivery delivery) {
  loop.post([this, delivery = std::move(delivery)]() mutable { deliver(std::move(delivery)); });
}

void Shard::deliver(Delivery delivery) {
  const std::uint32_t slot = delivery.order.to.slot;
  Exchange* exchange = slot < slots_.size() ? slots_[slot] : nullptr;
  if (exchange == nullptr || exchange->request.id != delivery.order.request) {
    // Its request ended meanwhile; the attempt it was given must still be given back.
    if (const auto* start = std::get_if<policies::Start>(&delivery.order.what)) shared.host.abandon(start->attempt);
    return;
  }
  exchange->inbox = std::move(delivery);
  exchange->waker.wake();
}

// At a backend's cap of connections: a share that another connection has given up, or an idle connection of another
// shard, is brought to the request that waits for it. If it is gone what came goes on to the next.
void Shard::share_freed(std::uint32_t slot, std::uint64_t ticket, backends::ConnectionShare share) {
  move_here(slot, ticket, std::make_shared<backends::Link::Moving>(std::move(share)));
}

void Shard::move_here(std::uint32_t slot, std::uint64_t ticket, std::shared_ptr<backends::Link::Moving> moving) {
  loop.post([this, slot, ticket, moving = std::move(moving)] {
    Exchange* exchange = slot < slots_.size() ? slots_[slot] : nullptr;
    if (exchange == nullptr || exchange->ticket != ticket) return;
    exchange->ticket = 0;
    exchange->moving = moving;
    exchange->waker.wake();
  });
}

void Shard::give_up_idle(std::shared_ptr<const config::Target> target) {
  loop.post([this, target = std::move(target)] { lend_idle(*target); });
}

void Shard::lend_idle(const config::Target& target) {
  using Wish = backends::ConnectionCap::Wish;
  backends::ConnectionCap& cap = *target.connections;
  const auto endpoint = static_cast<std::uint32_t>(target.endpoint);
  while (cap.pressed()) {
    backends::LinkPtr link = upstream.take(endpoint);
    if (!link) return;
    if (!link->can_move()) continue;  // closed: its share goes to the one who waits
    backends::ShareWaiter who;
    const Wish wish = cap.wish(link->share(), who);
    if (wish == Wish::keep) return upstream.give(endpoint, std::move(link), now());
    if (wish == Wish::lend) static_cast<Shard*>(who.worker)->move_here(who.slot, who.ticket, link->move_out());
  }
}

void Shard::use(std::shared_ptr<const config::Catalog> catalog) {
  loop.post([this, catalog = std::move(catalog)]() mutable {
    catalog_ = std::move(catalog);
    upstream.options(pool_options(*catalog_));
    for (const auto& target : catalog_->targets) {
      if (target && target->connections->pressed()) lend_idle(*target);  // their cap is lower than it was
    }
  });
}

void Shard::stop_listening() {
  loop.post([this] {
    stopping_ = true;
    listener_.reset();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] != nullptr && slots_[i]->idle) slots_[i]->waker.wake();
    }
    close_if_empty();
  });
}

void Shard::cut_all() {
  loop.post([this] {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] == nullptr) continue;
      slots_[i]->stopping = true;
      if (!slots_[i]->idle) ++cut_at_stop;
      slots_[i]->waker.wake();
    }
  });
}

void Shard::flush_lines() {
  lines.flush();
  if (!gaps.empty()) shared.host.progress(gaps.take());
  look_at_clocks();
  flusher_.set(looked_at_ + flush_every);
}

void Shard::look_at_clocks() {
  looked_at_ = now();
  wall_looked_at_ = std::chrono::system_clock::now();
}

void Shard::close_if_empty() {
  if (!stopping_ || connections_ != 0) return;
  flusher_.cancel();
  upstream.close_all();
  loop.stop();
}

}  // namespace headgate::gateway
