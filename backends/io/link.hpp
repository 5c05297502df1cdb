// One TCP connection whose read is always armed: bytes, the peer's end and errors are noticed whether or not anyone
// waits for them, and a keep-alive request costs no call beyond its own sends and receives.
// The owner is a coroutine with a Waker: every event of the link sets a flag here and wakes it.
// Not thread-safe; lives on its worker. Destroyed through LinkPtr: operations still pending keep the memory, not the
// socket.
#pragma once

#include <boost/asio/buffer.hpp>
#include <cstdint>
#include <memory>
#include <span>

#include "backends/io/buffer.hpp"
#include "backends/io/io.hpp"
#include "backends/io/waker.hpp"

namespace headgate::backends {

class Link;
struct RetireLink {
  void operator()(Link* link) const;
};
using LinkPtr = std::unique_ptr<Link, RetireLink>;

class Link {
 public:
  static LinkPtr adopt(Socket socket, BufferPool& pool);                                   // accepted
  static LinkPtr dial(asio::io_context& io, BufferPool& pool, const asio::ip::tcp::endpoint& to);  // connecting() at first

  // Who is woken; null: nobody (an idle connection in its pool).
  void owner(Waker* waker) { waker_ = waker; }

  // Reading. arm() starts a read into in() if none is pending; the buffer must not be moved while reading().
  void arm();
  Buffer& in() { return in_; }
  bool reading() const { return reading_; }
  bool ended() const { return ended_; }    // the peer closed or reset, or close() was called
  bool clean_end() const { return clean_end_; }  // by FIN
  std::uint64_t bytes_read() const { return bytes_read_; }

  bool connecting() const { return connecting_; }
  bool connected() const { return !connecting_ && !ended_; }

  // Writing: as much as the kernel takes now. Returns bytes taken; fewer than given: await_writable(), then again.
  std::size_t write_some(std::span<const asio::const_buffer> pieces);
  void await_writable();                   // wakes the owner; awaiting_writable() until then
  bool awaiting_writable() const { return writing_; }
  bool write_failed() const { return write_failed_; }

  void close();        // now; pending operations end
  void reset();        // close with RST: the peer learns that the answer is not whole
  void shut_down();    // FIN after what was written

  Socket& socket() { return socket_; }

 private:
  friend struct RetireLink;
  Link(Socket socket, BufferPool& pool) : socket_(std::move(socket)), in_(pool) {}
  ~Link() = default;
  bool pending() const { return reading_ || writing_ || connecting_; }
  void settle();  // after a completion: wake the owner, or free a retired link

  Socket socket_;
  Buffer in_;
  Waker* waker_ = nullptr;
  std::uint64_t bytes_read_ = 0;
  bool reading_ = false, writing_ = false, connecting_ = false;
  bool ended_ = false, clean_end_ = false, write_failed_ = false, retired_ = false;
};

}  // namespace headgate::backends
