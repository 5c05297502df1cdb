// A listening TCP socket on a Loop. Out of descriptors or memory it pauses for 100 ms and goes on where it was.
#pragma once

#include <functional>
#include <string>

#include "backends/io/endpoint.hpp"
#include "backends/io/loop.hpp"

namespace headgate::backends {

// Binds and listens. `share`: with SO_REUSEPORT. Throws std::system_error.
int open_listener(const Endpoint& at, bool share = false);
void share_port(int fd);         // SO_REUSEPORT from now on: others of this process may join
std::uint16_t port_of(int fd);   // the one it got, where 0 was asked for

class Listener final : public Loop::Watched {
 public:
  // Owns the socket. The function takes each accepted, non-blocking connection.
  Listener(Loop& loop, int fd, std::function<void(int)> accepted);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  void on_ready(std::uint32_t events) override;
  void accept_all();

  Loop& loop_;
  int fd_;
  std::function<void(int)> accepted_;
  Loop::Timer again_;
};

}  // namespace headgate::backends
