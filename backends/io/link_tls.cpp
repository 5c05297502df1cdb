// What a Link does otherwise when it speaks TLS.
#include <sys/epoll.h>

#include "backends/io/link.hpp"
#include "backends/io/tls_session.hpp"

namespace headgate::backends {

// The socket's news for the session: what waited to be sent goes on, a handshake goes on. True: it is over.
bool Link::tls_ready(std::uint32_t events) {
  tls_->ready((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0, peer_ended_);
  if (tls_->clogged() && writable_) writable_ = tls_->flush();
  if (tls_->broken()) write_failed_ = true;
  if (!connecting_) return false;
  const TlsSession::Step step = tls_->handshake();
  if (tls_->clogged()) writable_ = false;
  if (step == TlsSession::Step::waits) return false;
  connecting_ = false;
  readable_ = true;  // bytes may have come behind the handshake's
  if (step == TlsSession::Step::done) return true;
  tls_failure_ = tls_->failure();
  tls_failure_text_ = tls_->failure_text();
  if (tls_failure_ == TlsFailure::plain_http && tls_->server() == nullptr) {
    tls_.reset();
    write_failed_ = false;
  } else {
    close();
  }
  return true;
}

// All that fits. What ended it is found out by the next read, when this one brought bytes.
bool Link::tls_read() {
  const TlsSession::Got got = tls_->read(in_.tail(), in_.room());
  in_.commit(got.bytes);
  bytes_read_ += got.bytes;
  readable_ = got.then != TlsSession::Then::waits;
  if (tls_->clogged()) writable_ = false;  // an answer to a message of the protocol
  if (got.bytes > 0) return true;
  if (!readable_) {
    armed_ = true;
    if (in_.empty()) in_.release();
    return false;
  }
  ended_ = true;
  clean_end_ = got.then == TlsSession::Then::ended;
  return true;
}

std::size_t Link::tls_write(std::span<const Piece> pieces) {
  const std::size_t taken = tls_->write(pieces);
  if (tls_->broken()) write_failed_ = true;
  if (tls_->clogged()) writable_ = false;
  return taken;
}

bool Link::tls_unsent() const { return tls_->clogged(); }
const TlsPeer* Link::tls_server() const { return tls_ != nullptr ? tls_->server() : nullptr; }
bool Link::tls_resumed() const { return tls_ != nullptr && tls_->resumed(); }

}  // namespace headgate::backends
