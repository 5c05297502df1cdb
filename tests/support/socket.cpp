#include "support/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace headgate::support {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

Socket open_socket() {
  Socket made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) fail("socket");
  return made;
}

void bind_to(const Socket& socket, std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  if (::bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) fail("bind");
}

void send_at_once(const Socket& socket) {
  const int on = 1;
  if (::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) fail("TCP_NODELAY");
}

// True when `events` happened before the deadline.
bool wait_for(int descriptor, short events, Time deadline) {
  pollfd waited{descriptor, events, 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now()).count();
    const int ready = ::poll(&waited, 1, left > 0 ? static_cast<int>(left) : 0);
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
  }
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}

int Socket::release() { return std::exchange(descriptor_, -1); }

void Socket::close() {
  if (descriptor_ >= 0) ::close(release());
}

void Socket::reset() {
  if (descriptor_ < 0) return;
  const linger hard{1, 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close();
}

void Socket::finish() {
  if (descriptor_ >= 0) ::shutdown(descriptor_, SHUT_WR);
}

std::uint16_t Socket::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) < 0) fail("getsockname");
  return ntohs(address.sin_port);
}

Socket listen_on_loopback(std::uint16_t port, int backlog) {
  Socket listener = open_socket();
  const int on = 1;
  if (::setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) fail("SO_REUSEADDR");
  bind_to(listener, port);
  if (::listen(listener.descriptor(), backlog) < 0) fail("listen");
  return listener;
}

Socket accept_from(const Socket& listener) {
  Socket accepted(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (accepted) send_at_once(accepted);
  return accepted;
}

Socket connect_to_loopback(std::uint16_t port, Nanos within, int receive_buffer) {
  Socket made = open_socket();
  if (receive_buffer > 0)
    ::setsockopt(made.descriptor(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  send_at_once(made);
  const sockaddr_in address = loopback(port);
  if (::connect(made.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return made;
  if (errno != EINPROGRESS) fail("connect");
  if (!wait_for(made.descriptor(), POLLOUT, after(now(), within))) {
    errno = ETIMEDOUT;
    fail("connect");
  }
  int result = 0;
  socklen_t size = sizeof result;
  if (::getsockopt(made.descriptor(), SOL_SOCKET, SO_ERROR, &result, &size) < 0) fail("getsockopt");
  if (result != 0) {
    errno = result;
    fail("connect");
  }
  return made;
}

Received receive(const Socket& socket, Time deadline) {
  std::array<char, 64 << 10> buffer;
  for (;;) {
    const ssize_t got = ::recv(socket.descriptor(), buffer.data(), buffer.size(), 0);
    if (got > 0) return {Got::bytes, std::string(buffer.data(), static_cast<std::size_t>(got))};
    if (got == 0) return {Got::closed, {}};
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return {Got::reset, {}};
    if (!wait_for(socket.descriptor(), POLLIN, deadline)) return {Got::nothing, {}};
  }
}

bool send_all(const Socket& socket, std::string_view bytes, Time deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
    if (!wait_for(socket.descriptor(), POLLOUT, deadline)) return false;
  }
  return true;
}

RefusedPort::RefusedPort() : socket_(open_socket()) { bind_to(socket_, 0); }

std::uint16_t free_port() {
  const Socket probe = open_socket();
  bind_to(probe, 0);
  return probe.port();
}

}  // namespace headgate::support
