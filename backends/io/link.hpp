// One TCP connection on a Loop. Bytes, the peer's end and errors are noticed whether or not anyone waits for them, and a
// keep-alive request costs no system call beyond its own sends and receives.
// The owner is a coroutine with a Waker: every event of the link sets a flag here and wakes it.
// Not thread-safe; lives on its worker.
#pragma once

#include <boost/asio/buffer.hpp>
#include <cstdint>
#include <memory>
#include <span>

#include "backends/io/buffer.hpp"
#include "backends/io/endpoint.hpp"
#include "backends/io/loop.hpp"
#include "backends/io/waker.hpp"

namespace headgate::backends {

using Piece = boost::asio::const_buffer;  // of a gathered write

class Link;
using LinkPtr = std::unique_ptr<Link>;

class Link final : public Loop::Watched {
 public:
  static LinkPtr adopt(Loop& loop, BufferPool& pool, int fd);                   // accepted; the link's from here on
  static LinkPtr dial(Loop& loop, BufferPool& pool, const Endpoint& to);        // connecting() at first
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Who is woken; null: nobody (an idle connection in its pool).
  void owner(Waker* waker) { waker_ = waker; }

  // Reading. arm(): what has come, or comes next, is put into in() as far as it has room, and the owner is woken. Until
  // then an empty buffer gives its memory back.
  void arm();
  Buffer& in() { return in_; }
  bool ended() const { return ended_; }    // the peer closed or reset, or close() was called
  bool clean_end() const { return clean_end_; }  // by FIN
  bool peer_ended() const { return ended_ || peer_ended_; }  // known even while unread bytes stand before the end
  std::uint64_t bytes_read() const { return bytes_read_; }

  bool connecting() const { return connecting_; }
  bool connected() const { return !connecting_ && !ended_; }
  bool for_want_of_resources() const { return short_of_; }  // it could not be dialled, see shortage.hpp

  // Writing: as much as the kernel takes now. Returns bytes taken; fewer than given: await_writable(), then again.
  std::size_t write_some(std::span<const Piece> pieces);
  void await_writable();                   // wakes the owner; awaiting_writable() until then
  bool awaiting_writable() const { return awaiting_writable_; }
  bool write_failed() const { return write_failed_; }

  void close();      // now
  void reset();      // close with RST: the peer learns that the answer is not whole
  void shut_down();  // FIN after what was written

 private:
  Link(Loop& loop, BufferPool& pool, int fd) : loop_(loop), in_(pool), fd_(fd) {}
  void on_ready(std::uint32_t events) override;
  void prefetch() const override;
  bool read();  // false: nothing was there
  void wake() {
    if (waker_ != nullptr) waker_->wake();
  }

  Loop& loop_;
  Buffer in_;
  Waker* waker_ = nullptr;
  std::uint64_t bytes_read_ = 0;
  int fd_;
  bool armed_ = false;
  bool readable_ = true;  // there may be bytes: an edge came and was not yet used up
  bool peer_ended_ = false;  // behind the bytes still unread
  bool writable_ = true;     // as far as is known
  bool connecting_ = false, awaiting_writable_ = false;
  bool ended_ = false, clean_end_ = false, write_failed_ = false, short_of_ = false;
};

}  // namespace headgate::backends
