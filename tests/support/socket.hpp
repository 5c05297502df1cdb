// Loopback TCP sockets for tests, with a deadline on every wait. Each send is one system call with TCP_NODELAY, so a
// peer that reads in time sees the boundaries of the writes. Nothing is inherited by child processes.
// Failures of the set-up (no socket, refused connection) throw std::system_error; those of a running connection are
// values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/waiting.hpp"

namespace headgate::support {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  int release();
  std::uint16_t port() const;  // the local one
  void close();                // FIN, or RST if there are unread bytes
  void reset();                // RST
  void finish();               // no more bytes from here, still reading

 private:
  int descriptor_ = -1;
};

Socket listen_on_loopback(std::uint16_t port = 0, int backlog = 512);
Socket accept_from(const Socket& listener);  // an empty Socket when nobody waits
// receive_buffer: bytes that the kernel may hold unread, 0: as it likes.
Socket connect_to_loopback(std::uint16_t port, Nanos within = 5s, int receive_buffer = 0);

enum class Got : std::uint8_t { bytes, closed, reset, nothing };  // nothing: the deadline passed
struct Received {
  Got what = Got::nothing;
  std::string bytes;
};
Received receive(const Socket& socket, Time deadline);
// False if the peer is gone or did not take all bytes in time.
bool send_all(const Socket& socket, std::string_view bytes, Time deadline);

// A port to which every connection attempt is refused for as long as this lives.
class RefusedPort {
 public:
  RefusedPort();
  std::uint16_t port() const { return socket_.port(); }

 private:
  Socket socket_;
};

// A port that was free a moment ago; another process may take it, so be ready to try again.
std::uint16_t free_port();

}  // namespace headgate::support
