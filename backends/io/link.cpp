#include "backends/io/link.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "backends/io/shortage.hpp"
#include "backends/io/tls_session.hpp"

namespace headgate::backends {

namespace {

constexpr std::size_t read_room_min = 4096;  // below this an empty buffer gets fresh room
constexpr std::size_t pieces_max = 16;
constexpr std::size_t joined_max = 2048;  // copied together, which costs less than a system call with several pieces

void set_no_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Link::Link(Loop& loop, BufferPool& pool, int fd) : loop_(loop), in_(pool), fd_(fd) {}

LinkPtr Link::adopt(Loop& loop, BufferPool& pool, int fd, const std::shared_ptr<const TlsCertificate>& own) {
  LinkPtr link(new Link(loop, pool, fd));
  set_no_delay(fd);
  if (own != nullptr) link->tls_ = std::make_unique<TlsSession>(fd, own);
  link->connecting_ = own != nullptr;
  if (!loop.watch(fd, *link)) link->close();
  return link;
}

LinkPtr Link::dial(Loop& loop, BufferPool& pool, const Endpoint& to, const std::shared_ptr<const TlsPeer>& server,
                   TlsTickets* tickets) {
  int fd = ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= descriptors_for_backends()) {
    ::close(std::exchange(fd, -1));
    errno = EMFILE;
  }
  LinkPtr link(new Link(loop, pool, fd));
  link->readable_ = link->writable_ = false;
  link->connecting_ = true;
  link->reached_ = false;
  if (fd >= 0) set_no_delay(fd);
  if (fd >= 0 && server != nullptr) link->tls_ = std::make_unique<TlsSession>(fd, server, tickets);
  if (fd < 0 || (::connect(fd, to.address(), to.size()) != 0 && errno != EINPROGRESS) || !loop.watch(fd, *link)) {
    link->short_of_ = is_shortage(errno);
    link->close();
  }
  return link;
}

std::shared_ptr<Link::Moving> Link::move_out() {
  loop_.unwatch(fd_, *this);
  ended_ = true;
  return std::make_shared<Moving>(std::move(share_), std::exchange(fd_, -1));
}

LinkPtr Link::adopt(Loop& loop, BufferPool& pool, Moving& from) {
  LinkPtr link = adopt(loop, pool, std::exchange(from.fd, -1));
  link->share_ = std::move(from.share);
  return link;
}

Link::Moving::~Moving() {
  if (fd >= 0) ::close(fd);
}

Link::~Link() {
  if (tls_ != nullptr && connected()) tls_->say_goodbye();
  close();
}

void Link::prefetch() const {
  __builtin_prefetch(&fd_);
  __builtin_prefetch(waker_);
  __builtin_prefetch(reinterpret_cast<const char*>(waker_) + 64);  // its owner's
}

void Link::on_ready(std::uint32_t events) {
  bool news = false;
  if (!reached_) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    reached_ = error == 0;
    connecting_ = reached_ && tls_ != nullptr;
    if (error != 0) close();
    writable_ = true;
    news = !connecting_;
  }
  if ((events & EPOLLOUT) != 0) writable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) news = !std::exchange(peer_ended_, true) || news;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
  if (tls_ != nullptr && !ended_) news = tls_ready(events) || news;
  if (awaiting_writable_ && (writable_ || (events & (EPOLLERR | EPOLLHUP)) != 0)) {
    awaiting_writable_ = false;
    news = true;
  }
  if (armed_ && readable_ && !ended_ && !connecting_) news = read() || news;
  if (news) wake();
}

void Link::arm() {
  armed_ = true;
  if (ended_ || connecting_) return;
  if (readable_) {
    if (read()) wake();
  } else if (in_.empty()) {
    in_.release();
  }
}

// One receive. A short one has taken all there was, unless the peer's end waits behind it.
bool Link::read() {
  if (in_.empty()) {
    in_.clear();
    in_.reserve(read_room_min);
  }
  const std::size_t room = in_.room();
  if (room == 0) return false;
  armed_ = false;
  if (tls_ != nullptr) return tls_read();
  const ssize_t n = ::recv(fd_, in_.tail(), room, 0);
  if (n > 0) {
    const auto count = static_cast<std::size_t>(n);
    in_.commit(count);
    bytes_read_ += count;
    if (count < room && !peer_ended_) readable_ = false;
    return true;
  }
  if (n < 0 && errno == EAGAIN) {
    readable_ = false;
    armed_ = true;
    if (in_.empty()) in_.release();
    return false;
  }
  ended_ = true;
  clean_end_ = n == 0;
  return true;
}

std::size_t Link::write_some(std::span<const Piece> pieces) {
  if (fd_ < 0) {
    write_failed_ = true;
    return 0;
  }
  if (tls_ != nullptr) return tls_write(pieces);
  std::array<iovec, pieces_max> parts;
  std::size_t count = 0, wanted = 0;
  for (const Piece& piece : pieces) {
    if (piece.size() == 0) continue;
    if (count == parts.size()) break;
    parts[count++] = {const_cast<void*>(piece.data()), piece.size()};
    wanted += piece.size();
  }
  if (count == 0) return 0;
  ssize_t n = 0;
  if (count == 1) {
    n = ::send(fd_, parts[0].iov_base, wanted, MSG_NOSIGNAL);
  } else if (wanted <= joined_max) {
    std::array<char, joined_max> joined;
    char* end = joined.data();
    for (const iovec& part : std::span(parts).first(count))
      end = std::copy_n(static_cast<const char*>(part.iov_base), part.iov_len, end);
    n = ::send(fd_, joined.data(), wanted, MSG_NOSIGNAL);
  } else {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    n = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
  }
  if (n < 0 && errno != EAGAIN) write_failed_ = true;
  const std::size_t taken = n > 0 ? static_cast<std::size_t>(n) : 0;
  if (taken < wanted) writable_ = false;
  return taken;
}

// A short write leaves the socket full, so that an edge comes when there is room again.
void Link::await_writable() {
  if (awaiting_writable_ || ended_) return;
  if (writable_) {
    wake();
  } else {
    awaiting_writable_ = true;
  }
}

void Link::close() {
  ended_ = true;
  connecting_ = awaiting_writable_ = false;
  if (fd_ < 0) return;
  loop_.forget(*this);
  ::close(fd_);
  fd_ = -1;
  share_ = {};
}

void Link::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  if (fd_ >= 0) ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void Link::shut_down() {
  if (tls_ != nullptr && connected()) tls_->say_goodbye();
  if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
}

}  // namespace headgate::backends
