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

  // Reading. arm() starts a read into in() if none is pending and there is room. Bytes may be consumed or erased while
  // it is pending: what comes is put behind what is left. Room is made by reserve() here, not on the buffer.
  void arm();
  Buffer& in() { return in_; }
  void reserve(std::size_t n);  // views into in() are then invalid
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
  Link(Socket socket, BufferPool& pool) : socket_(std::move(socket)), pool_(pool), in_(pool), parked_(pool) {}
  ~Link() = default;
  bool pending() const { return reading_ || writing_ || connecting_; }
  void settle();  // after a completion: wake the owner, or free a retired link

  void take_in(std::size_t n);  // n bytes arrived at armed_at_

  Socket socket_;
  BufferPool& pool_;
  Buffer in_;
  Buffer parked_;            // the block a pending read goes to, when in_ has grown out of it meanwhile
  char* armed_at_ = nullptr;  // where the pending read goes
  Waker* waker_ = nullptr;
  std::uint64_t bytes_read_ = 0;
  bool reading_ = false, writing_ = false, connecting_ = false;
  bool ended_ = false, clean_end_ = false, write_failed_ = false, retired_ = false;
};

}  // namespace headgate::backends
