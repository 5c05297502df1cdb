#include "backends/io/tls_session.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

namespace headgate::backends {

namespace {

constexpr std::size_t record_max = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr std::size_t unsent_max = 256 << 10;  // one that makes us answer and never reads is given up

}  // namespace

// The socket as OpenSSL sees it: writes always succeed, reads cost no system call when nothing can have come.
struct SocketBio {
  static int write(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
    TlsSession& session = *static_cast<TlsSession*>(BIO_get_data(bio));
    *written = size;
    std::size_t sent = 0;
    if (session.out_.empty() && !session.broken_) {
      const ssize_t n = ::send(session.fd_, data, size, MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN) session.broken_ = true;
      if (n > 0) sent = static_cast<std::size_t>(n);
    }
    if (!session.broken_ && sent < size) session.out_.append(data + sent, size - sent);
    if (session.out_.size() > unsent_max) session.broken_ = true;
    return session.broken_ ? -1 : 1;
  }

  static int read(BIO* bio, char* to, std::size_t room, std::size_t* got) {
    TlsSession& session = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    *got = 0;
    const ssize_t n = session.readable_ ? ::recv(session.fd_, to, room, 0) : -1;
    if (n > 0) {
      *got = static_cast<std::size_t>(n);
      // a short one has taken all there was, unless the peer's end waits behind it
      if (*got < room && !session.peer_ended_) session.readable_ = false;
      return 1;
    }
    if (n < 0 && (!session.readable_ || errno == EAGAIN)) {
      session.readable_ = false;
      BIO_set_retry_read(bio);
      return -1;
    }
    session.peer_ended_ = true;
    return n == 0 ? 0 : -1;
  }

  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_FLUSH) return 1;
    return command == BIO_CTRL_EOF ? static_cast<TlsSession*>(BIO_get_data(bio))->peer_ended_ : 0;
  }

  static const BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "headgate socket");
      BIO_meth_set_write_ex(fresh, write);
      BIO_meth_set_read_ex(fresh, read);
      BIO_meth_set_ctrl(fresh, control);
      return fresh;
    }();
    return made;
  }
};

std::string_view name_of(TlsFailure failure) {
  constexpr std::array<std::string_view, tls_failures> names{
      "none", "plain_http", "not_tls", "version", "cipher", "certificate", "alert", "closed", "timeout", "other"};
  return names[static_cast<std::size_t>(failure)];
}

TlsSession::TlsSession(int fd, std::shared_ptr<const TlsCertificate> own) : fd_(fd), own_(std::move(own)) {
  ssl_ = SSL_new(own_->context());
  attach();
  SSL_set_accept_state(ssl_);
}

TlsSession::TlsSession(int fd, std::shared_ptr<const TlsPeer> server, TlsTickets* tickets)
    : fd_(fd), server_(std::move(server)), tickets_(tickets) {
  ssl_ = SSL_new(server_->trust().get());
  attach();
  server_->prepare(ssl_);
  SSL_set_connect_state(ssl_);
  if (tickets_ != nullptr) tickets_->offer(*server_, ssl_);
}

void TlsSession::attach() {
  BIO* bio = ssl_ != nullptr ? BIO_new(SocketBio::method()) : nullptr;
  if (bio == nullptr) {
    SSL_free(ssl_);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
}

TlsSession::~TlsSession() {
  SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);  // else its session may not be taken up again
  SSL_free(ssl_);
}

int TlsSession::ticket_came(SSL* ssl, SSL_SESSION* session) {
  const auto* to = static_cast<const TlsSession*>(SSL_get_app_data(ssl));
  if (to == nullptr || to->tickets_ == nullptr || SSL_SESSION_is_resumable(session) != 1) return 0;
  to->tickets_->keep(to->server_, session);
  return 1;
}

void TlsSession::ready(bool readable, bool ended) {
  readable_ = readable_ || readable;
  peer_ended_ = peer_ended_ || ended;
}

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_);
  if (done == 1) return Step::done;
  const int error = SSL_get_error(ssl_, done);
  if (error == SSL_ERROR_WANT_READ && !broken_) return Step::waits;
  note_failure(error);
  broken_ = true;
  if (tickets_ != nullptr) tickets_->drop(*server_);
  return Step::failed;
}

bool TlsSession::resumed() const { return SSL_session_reused(ssl_) == 1; }

void TlsSession::note_failure(int error) {
  const unsigned long first = ERR_peek_error();
  const int reason = ERR_GET_REASON(first);
  const char* text = ERR_reason_error_string(first);
  failure_text_ = text != nullptr ? text : "unknown error";
  failure_ = TlsFailure::other;
  if (error == SSL_ERROR_SYSCALL || first == 0 || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    failure_ = TlsFailure::closed;
    failure_text_ = "the connection was closed during the handshake";
  } else if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    failure_ = TlsFailure::certificate;
    failure_text_.append(": ").append(X509_verify_cert_error_string(SSL_get_verify_result(ssl_)));
  } else if (reason == SSL_R_HTTP_REQUEST || reason == SSL_R_HTTPS_PROXY_REQUEST) {
    failure_ = TlsFailure::plain_http;
  } else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_RECORD_TOO_SMALL ||
             reason == SSL_R_UNEXPECTED_MESSAGE) {
    failure_ = TlsFailure::not_tls;
  } else if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_VERSION_TOO_LOW ||
             reason == SSL_R_UNKNOWN_PROTOCOL) {
    failure_ = TlsFailure::version;
  } else if (reason == SSL_R_NO_SHARED_CIPHER) {
    failure_ = TlsFailure::cipher;
  } else if (reason > SSL_AD_REASON_OFFSET) {
    failure_ = TlsFailure::alert;
  }
  ERR_clear_error();
}

TlsSession::Got TlsSession::read(char* to, std::size_t room) {
  Got got{0, Then::more};
  ERR_clear_error();
  while (got.bytes < room) {
    std::size_t n = 0;
    if (SSL_read_ex(ssl_, to + got.bytes, room - got.bytes, &n) == 1) {
      got.bytes += n;
      continue;
    }
    const int error = SSL_get_error(ssl_, 0);
    if (error == SSL_ERROR_WANT_READ) {
      got.then = Then::waits;
    } else {
      got.then = error == SSL_ERROR_ZERO_RETURN ? Then::ended : Then::broken;
      broken_ = broken_ || got.then == Then::broken;
    }
    ERR_clear_error();
    break;
  }
  return got;
}

bool TlsSession::encrypt(const void* data, std::size_t size) {
  std::size_t taken = 0;
  ERR_clear_error();
  const bool good = SSL_write_ex(ssl_, data, size, &taken) == 1 && taken == size;
  broken_ = broken_ || !good;
  ERR_clear_error();
  return good;
}

std::size_t TlsSession::write(std::span<const Piece> pieces) {
  std::array<char, record_max> gathered;
  std::size_t taken = 0;
  while (!pieces.empty() && pieces.back().size() == 0) pieces = pieces.first(pieces.size() - 1);
  Piece front = pieces.empty() ? Piece() : pieces.front();
  while (!pieces.empty() && !broken_ && flush()) {
    const auto next = [&] {
      pieces = pieces.subspan(1);
      front = pieces.empty() ? Piece() : pieces.front();
    };
    std::size_t size = std::min(front.size(), record_max);
    const void* data = front.data();
    if (size == record_max || pieces.size() == 1) {  // a record of its own, from where it is
      front += size;
      if (front.size() == 0) next();
    } else {
      size = 0;
      while (!pieces.empty() && size < record_max) {
        const std::size_t part = std::min(front.size(), record_max - size);
        if (part > 0) std::memcpy(gathered.data() + size, front.data(), part);
        size += part;
        front += part;
        if (front.size() == 0) next();
      }
      data = gathered.data();
    }
    if (!encrypt(data, size)) break;
    taken += size;
  }
  return taken;
}

bool TlsSession::flush() {
  if (out_.empty()) return true;
  const ssize_t n = ::send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN) broken_ = true;
  if (n > 0) out_.erase(0, static_cast<std::size_t>(n));
  if (out_.empty()) std::string().swap(out_);
  return out_.empty();
}

void TlsSession::say_goodbye() {
  if (said_goodbye_ || broken_ || clogged() || SSL_is_init_finished(ssl_) != 1) return;
  said_goodbye_ = true;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace headgate::backends
