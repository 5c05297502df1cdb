#include "backends/io/listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "backends/io/shortage.hpp"

namespace headgate::backends {

namespace {

constexpr Nanos pause = std::chrono::milliseconds(100);
constexpr int backlog = 4096;
constexpr int unsent_max = 64 * 1024;  // bytes that wait in the kernel for a slow reader's window; else 4 MB each
constexpr int taken_max = 64;          // in one turn: connections that exist have theirs in between

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

Listener::Listener(Loop& loop, int fd, Accepted accepted, std::function<void(int error)> paused)
    : loop_(loop), fd_(fd), accepted_(std::move(accepted)), paused_(std::move(paused)), again_(loop, [this] {
        accept_all();
      }) {
  if (!loop_.watch(fd_, *this)) throw std::system_error(errno, std::system_category(), "epoll_ctl");
}

Listener::~Listener() {
  loop_.forget(*this);
  ::close(fd_);
}

void Listener::on_ready(std::uint32_t) { accept_all(); }

bool Listener::enough_left() {
  if (!tight_) return true;
  const int lowest_free = ::dup(fd_);
  tight_ = lowest_free < 0 || lowest_free >= descriptors_for_callers();
  if (lowest_free >= 0) ::close(lowest_free);
  return !tight_;
}

// Any error but those of a single connection may be there again at once: it pauses too.
void Listener::accept_all() {
  const Time now = std::chrono::steady_clock::now();
  for (int n = 0; n < taken_max; ++n) {
    const bool enough = enough_left();
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    auto* const address = reinterpret_cast<sockaddr*>(&from);
    const int fd = enough ? ::accept4(fd_, address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC) : -1;
    const int error = enough ? errno : EMFILE;
    if (fd >= 0) {
      tight_ = fd >= descriptors_for_callers();
      accepted_(fd, IpAddress::of(address));
    } else if (error == EAGAIN) {
      return again_.set(never);
    } else if (error != EINTR && error != ECONNABORTED) {
      if (paused_) paused_(error);
      return again_.set(now + pause);
    }
  }
  again_.set(now);
}

}  // namespace headgate::backends
