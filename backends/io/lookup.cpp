#include "backends/io/lookup.hpp"

#include <boost/asio/ip/address.hpp>

namespace headgate::backends {

struct Lookup::Pending {
  explicit Pending(asio::io_context& io) : resolver(io.get_executor()) {}
  asio::ip::basic_resolver<asio::ip::tcp, Executor> resolver;
  std::vector<asio::ip::tcp::endpoint> addresses;
  Waker* waker = nullptr;
  bool done = false;
};

Lookup::Lookup(asio::io_context& io, const std::string& host, std::uint16_t port, Waker& waker) {
  ErrorCode not_numeric;
  const asio::ip::address address = asio::ip::make_address(host, not_numeric);
  if (!not_numeric) {
    numeric_.emplace_back(address, port);
    return;
  }
  pending_ = std::make_shared<Pending>(io);
  pending_->waker = &waker;
  pending_->resolver.async_resolve(host, std::to_string(port), [pending = pending_](const ErrorCode& failed, auto found) {
    pending->done = true;
    if (!failed) {
      for (const auto& entry : found) pending->addresses.push_back(entry.endpoint());
    }
    if (pending->waker != nullptr) pending->waker->wake();
  });
}

Lookup::~Lookup() {
  if (!pending_) return;
  pending_->waker = nullptr;
  pending_->resolver.cancel();
}

bool Lookup::done() const { return !pending_ || pending_->done; }

const std::vector<asio::ip::tcp::endpoint>& Lookup::addresses() const { return pending_ ? pending_->addresses : numeric_; }

}  // namespace headgate::backends
