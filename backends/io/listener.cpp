#include "backends/io/listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>

namespace headgate::backends {

namespace {

constexpr Nanos pause = std::chrono::milliseconds(100);
constexpr int backlog = 4096;
constexpr int unsent_max = 64 * 1024;  // bytes that wait in the kernel for a slow reader's window; else 4 MB each

void switch_on(int fd, int option) {
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, option, &on, sizeof on);
}

}  // namespace

int open_listener(const Endpoint& at, bool share) {
  const int fd = ::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= 0) switch_on(fd, SO_REUSEADDR);
  if (fd >= 0 && share) switch_on(fd, SO_REUSEPORT);
  if (fd >= 0)
    ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_max, sizeof unsent_max);  // accepted sockets inherit it
  if (fd >= 0 && ::bind(fd, at.address(), at.size()) == 0 && ::listen(fd, backlog) == 0) return fd;
  const std::system_error failed(errno, std::system_category());
  if (fd >= 0) ::close(fd);
  throw failed;
}

void share_port(int fd) { switch_on(fd, SO_REUSEPORT); }

std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return Endpoint(reinterpret_cast<const sockaddr*>(&address), size).port();
}

Listener::Listener(Loop& loop, int fd, std::function<void(int)> accepted)
    : loop_(loop), fd_(fd), accepted_(std::move(accepted)), again_(loop, [this] { accept_all(); }) {
  if (!loop_.watch(fd_, *this)) throw std::system_error(errno, std::system_category(), "epoll_ctl");
}

Listener::~Listener() {
  loop_.forget(*this);
  ::close(fd_);
}

void Listener::on_ready(std::uint32_t) { accept_all(); }

void Listener::accept_all() {
  for (;;) {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      accepted_(fd);
      continue;
    }
    if (errno == EAGAIN) return;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return again_.set(std::chrono::steady_clock::now() + pause);
    }
  }
}

}  // namespace headgate::backends
