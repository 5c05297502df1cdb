// One TCP connection on a Loop. Bytes, the peer's end and errors are noticed whether or not anyone waits for them, and
// a keep-alive request costs no system call beyond its own sends and receives. The owner is a coroutine with a Waker:
// every event of the link sets a flag here and wakes it. With TLS its bytes are the plain ones; it is connecting()
// until the handshake is over, whichever side began, and its clean end is the other side's close_notify. Writes are
// gathered into records. Not thread-safe; lives on its worker.
#pragma once

#include <boost/asio/buffer.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backends/connection_cap.hpp"
#include "backends/io/buffer.hpp"
#include "backends/io/endpoint.hpp"
#include "backends/io/loop.hpp"
#include "backends/io/waker.hpp"

namespace headgate::backends {

using Piece = boost::asio::const_buffer;  // of a gathered write

class Link;
class TlsCertificate;
class TlsPeer;
class TlsSession;
class TlsTickets;
enum class TlsFailure : std::uint8_t;
using LinkPtr = std::unique_ptr<Link>;

class Link final : public Loop::Watched {
 public:
  // Accepted; the link's from here on. With a certificate: TLS.
  static LinkPtr adopt(Loop& loop, BufferPool& pool, int fd,
                       const std::shared_ptr<const TlsCertificate>& own = nullptr);
  // connecting() at first. With a server: TLS, and its tickets are kept in `tickets`.
  static LinkPtr dial(Loop& loop, BufferPool& pool, const Endpoint& to,
                      const std::shared_ptr<const TlsPeer>& server = nullptr, TlsTickets* tickets = nullptr);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Who is woken; null: nobody (an idle connection in its pool).
  void owner(Waker* waker) { waker_ = waker; }

  // Reading. arm(): what has come, or comes next, is put into in() as far as it has room, and the owner is woken. Until
  // then an empty buffer gives its memory back.
  void arm();
  Buffer& in() { return in_; }
  bool ended() const { return ended_; }                      // the peer closed or reset, or close() was called
  bool clean_end() const { return clean_end_; }              // by FIN
  bool peer_ended() const { return ended_ || peer_ended_; }  // known even while unread bytes stand before the end
  std::uint64_t bytes_read() const { return bytes_read_; }

  bool connecting() const { return connecting_; }
  bool connected() const { return !connecting_ && !ended_; }
  bool for_want_of_resources() const { return short_of_; }  // it could not be dialled, see shortage.hpp
  bool reached() const { return reached_; }                 // by TCP: what may still be missing is the handshake

  // How the handshake failed. After plain_http the link is not ended but a plain one, its first bytes lost.
  TlsFailure tls_failure() const { return tls_failure_; }
  const std::string& tls_failure_text() const { return tls_failure_text_; }
  const TlsPeer* tls_server() const;  // of a dialled one; null: none
  bool tls_resumed() const;           // the handshake was a short one

  // Writing: as much as the kernel takes now. Returns bytes taken; fewer than given: await_writable(), then again.
  std::size_t write_some(std::span<const Piece> pieces);
  void await_writable();  // wakes the owner; awaiting_writable() until then
  bool awaiting_writable() const { return awaiting_writable_; }
  bool write_failed() const { return write_failed_; }
  // With TLS: of what was taken, some is not with the kernel yet. It goes there by itself, but a close loses it.
  bool unsent() const { return tls_ != nullptr && tls_unsent(); }

  void close();      // now; with TLS the other side does not take it for the end of an answer
  void reset();      // close with RST: the peer learns that the answer is not whole
  void shut_down();  // FIN after what was written

  // Under a cap: the share goes back when the descriptor is closed.
  void hold(ConnectionShare share) { share_ = std::move(share); }
  ConnectionShare& share() { return share_; }
  // An idle one may go to another worker, who adopts it. TLS stays where its tickets are.
  bool can_move() const { return tls_ == nullptr && connected() && !write_failed_ && in_.empty(); }
  struct Moving;
  std::shared_ptr<Moving> move_out();  // this link has ended then
  static LinkPtr adopt(Loop& loop, BufferPool& pool, Moving& from);

 private:
  Link(Loop& loop, BufferPool& pool, int fd);
  void on_ready(std::uint32_t events) override;
  void prefetch() const override;
  bool read();  // false: nothing was there
  bool tls_ready(std::uint32_t events);
  bool tls_read();
  std::size_t tls_write(std::span<const Piece> pieces);
  bool tls_unsent() const;
  void wake() {
    if (waker_ != nullptr) waker_->wake();
  }

  Loop& loop_;
  Buffer in_;
  Waker* waker_ = nullptr;
  std::uint64_t bytes_read_ = 0;
  std::unique_ptr<TlsSession> tls_;  // null: none
  std::string tls_failure_text_;
  ConnectionShare share_;
  int fd_;
  bool armed_ = false;
  bool readable_ = true;                      // there may be bytes: an edge came and was not yet used up
  bool peer_ended_ = false;                   // behind the bytes still unread
  bool writable_ = true;                      // as far as is known
  bool connecting_ = false, reached_ = true;  // connecting: by TCP, then by TLS
  bool awaiting_writable_ = false;
  TlsFailure tls_failure_{};
  bool ended_ = false, clean_end_ = false, write_failed_ = false, short_of_ = false;
};

// A connection, or only the share for one, on its way to another worker. Whoever does not take it closes it.
struct Link::Moving {
  explicit Moving(ConnectionShare with, int descriptor = -1) : share(std::move(with)), fd(descriptor) {}
  ~Moving();
  Moving(const Moving&) = delete;
  Moving& operator=(const Moving&) = delete;
  bool connection() const { return fd >= 0; }

  ConnectionShare share;
  int fd;
};

}  // namespace headgate::backends
