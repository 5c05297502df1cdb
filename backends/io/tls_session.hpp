// TLS on one non-blocking socket, for Link: plain bytes in and out, the socket's edges told by ready(). What the socket
// does not take is kept here (bounded: nothing more is encrypted before it is gone), so a record is never half of the
// caller's affair and no buffer has to stay where it was.
#pragma once

#include <boost/asio/buffer.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backends/io/tls_context.hpp"
#include "backends/io/tls_failure.hpp"

namespace headgate::backends {

using Piece = boost::asio::const_buffer;

class TlsSession {
 public:
  // The side that accepted, and the side that dialled; `tickets` outlives the session, or is null.
  TlsSession(int fd, std::shared_ptr<const TlsCertificate> own);
  TlsSession(int fd, std::shared_ptr<const TlsPeer> server, TlsTickets* tickets);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // News of the socket: there may be bytes to read; the other side has ended, so a short read is not yet the last.
  void ready(bool readable, bool ended);

  enum class Step : std::uint8_t { done, waits, failed };
  Step handshake();
  TlsFailure failure() const { return failure_; }
  const std::string& failure_text() const { return failure_text_; }
  bool resumed() const;

  // As much as has come and fits. `then`: waits for the socket; there may be more; the end, in good order or not.
  enum class Then : std::uint8_t { waits, more, ended, broken };
  struct Got {
    std::size_t bytes;
    Then then;
  };
  Got read(char* to, std::size_t room);

  // Gathered into few records. Bytes taken: fewer than given when the socket is full.
  std::size_t write(std::span<const Piece> pieces);
  bool flush();  // what was taken and is still here; false: some is left
  bool clogged() const { return !out_.empty(); }
  bool broken() const { return broken_; }
  void say_goodbye();  // close_notify, if the socket takes it

  const TlsPeer* server() const { return server_.get(); }
  static int ticket_came(ssl_st* ssl, ssl_session_st* session);  // from OpenSSL

 private:
  friend struct SocketBio;
  void attach();
  void note_failure(int error);
  bool encrypt(const void* data, std::size_t size);

  int fd_;
  bool readable_ = true, peer_ended_ = false, broken_ = false, said_goodbye_ = false;
  TlsFailure failure_ = TlsFailure::none;
  ssl_st* ssl_ = nullptr;
  const std::shared_ptr<const TlsCertificate> own_;
  const std::shared_ptr<const TlsPeer> server_;
  TlsTickets* const tickets_ = nullptr;
  std::string out_;  // encrypted, not yet taken by the socket
  std::string failure_text_;
};

}  // namespace headgate::backends
