#include "backends/io/link.hpp"

#include <boost/asio/ip/tcp.hpp>

namespace headgate::backends {

namespace {
constexpr std::size_t read_room_min = 4096;  // below this a fresh read first makes room
}

void RetireLink::operator()(Link* link) const {
  link->waker_ = nullptr;
  link->close();
  if (link->pending()) {
    link->retired_ = true;
  } else {
    delete link;
  }
}

LinkPtr Link::adopt(Socket socket, BufferPool& pool) {
  ErrorCode ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  return LinkPtr(new Link(std::move(socket), pool));
}

LinkPtr Link::dial(asio::io_context& io, BufferPool& pool, const asio::ip::tcp::endpoint& to) {
  LinkPtr link(new Link(Socket(io.get_executor()), pool));
  ErrorCode failed;
  link->socket_.open(to.protocol(), failed);
  if (failed) {
    link->ended_ = true;
    return link;
  }
  link->socket_.non_blocking(true, failed);
  link->socket_.set_option(asio::ip::tcp::no_delay(true), failed);
  link->connecting_ = true;
  link->socket_.async_connect(to, [self = link.get()](const ErrorCode& refused) {
    self->connecting_ = false;
    if (refused) self->ended_ = true;
    self->settle();
  });
  return link;
}

void Link::settle() {
  if (retired_) {
    if (!pending()) delete this;
  } else if (waker_ != nullptr) {
    waker_->wake();
  }
}

void Link::arm() {
  if (reading_ || ended_ || connecting_) return;
  if (in_.empty()) {
    in_.clear();
    in_.reserve(read_room_min);
  }
  if (in_.room() == 0) return;
  reading_ = true;
  armed_at_ = in_.tail();
  socket_.async_read_some(asio::buffer(in_.tail(), in_.room()), [this](const ErrorCode& failed, std::size_t n) {
    reading_ = false;
    if (retired_) return settle();
    if (failed) {
      ended_ = true;
      clean_end_ = failed == asio::error::eof;
    } else {
      take_in(n);
    }
    parked_.release();
    settle();
  });
}

void Link::take_in(std::size_t n) {
  if (in_.room() < n) in_.reserve(n);
  if (armed_at_ != in_.tail()) std::memmove(in_.tail(), armed_at_, n);
  in_.commit(n);
  bytes_read_ += n;
}

void Link::reserve(std::size_t n) {
  if (in_.room() >= n) return;
  if (!reading_) return in_.reserve(n);
  Buffer bigger(pool_);
  bigger.reserve(in_.size() + n);
  std::memcpy(bigger.tail(), in_.data(), in_.size());
  bigger.commit(in_.size());
  if (parked_.capacity() == 0) parked_ = std::move(in_);
  in_ = std::move(bigger);
}

std::size_t Link::write_some(std::span<const asio::const_buffer> pieces) {
  ErrorCode failed;
  const std::size_t n = socket_.write_some(pieces, failed);
  if (failed && failed != asio::error::would_block && failed != asio::error::try_again) write_failed_ = true;
  return n;
}

void Link::await_writable() {
  if (writing_ || ended_) return;
  writing_ = true;
  socket_.async_wait(Socket::wait_write, [this](const ErrorCode& failed) {
    writing_ = false;
    if (failed) write_failed_ = true;
    settle();
  });
}

void Link::close() {
  ErrorCode ignored;
  socket_.close(ignored);
  ended_ = true;
}

void Link::reset() {
  ErrorCode ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

void Link::shut_down() {
  ErrorCode ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

}  // namespace headgate::backends
