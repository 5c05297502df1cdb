#include "gateway/shard.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include "gateway/connection.hpp"
#include "gateway/exchange.hpp"

namespace headgate::gateway {

namespace asio = backends::asio;

namespace {
constexpr Nanos flush_every = std::chrono::milliseconds(100);
constexpr Nanos accept_pause = std::chrono::milliseconds(100);  // no descriptors left: try again then

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
      accept_again_(wheel, [this] { accept(); }),
      id_seed_(static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())) {}

Shard::~Shard() = default;

void Shard::listen(Acceptor acceptor) {
  acceptor_ = std::make_unique<Acceptor>(std::move(acceptor));
  accept();
}

void Shard::run() {
  flusher_.set(now() + flush_every);
  io.run();
  lines.flush();
}

void Shard::accept() {
  if (stopping_ || !acceptor_) return;
  acceptor_->async_accept([this](const backends::ErrorCode& failed, backends::Socket socket) {
    if (stopping_) return;
    if (!failed) {
      accepted(std::move(socket));
    } else if (failed == asio::error::no_descriptors || failed == asio::error::no_buffer_space ||
               failed == asio::error::no_memory) {
      return accept_again_.set(now() + accept_pause);
    }
    accept();
  });
}

void Shard::accepted(backends::Socket socket) {
  const std::uint32_t share = catalog_->options.listen.connections_max / std::max(1u, catalog_->options.workers);
  if (connections_ >= std::max(1u, share)) return;  // closed by its destructor
  ++connections_;
  counters.caller_connections.add();
  asio::co_spawn(io, serve_connection(*this, backends::Link::adopt(std::move(socket), buffers)),
                 [this](std::exception_ptr bug) {
                   if (bug) std::rethrow_exception(bug);
                   --connections_;
                   counters.caller_connections.sub();
                   close_if_empty();
                 });
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
  asio::post(io, [this, delivery = std::move(delivery)]() mutable { deliver(std::move(delivery)); });
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

void Shard::use(std::shared_ptr<const config::Catalog> catalog) {
  asio::post(io, [this, catalog = std::move(catalog)]() mutable {
    catalog_ = std::move(catalog);
    upstream.options(pool_options(*catalog_));
  });
}

void Shard::stop_listening() {
  asio::post(io, [this] {
    stopping_ = true;
    accept_again_.cancel();
    if (acceptor_) acceptor_->close();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] != nullptr && slots_[i]->idle) slots_[i]->waker.wake();
    }
    close_if_empty();
  });
}

void Shard::cut_all() {
  asio::post(io, [this] {
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
  flusher_.set(now() + flush_every);
}

void Shard::close_if_empty() {
  if (!stopping_ || connections_ != 0) return;
  flusher_.cancel();
  upstream.close_all();
  wheel.stop();
}

}  // namespace headgate::gateway
