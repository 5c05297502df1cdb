// A listening TCP socket on a Loop. When accepting fails (out of descriptors or memory) it pauses: for 100 ms, or until
// its owner says that one was given back. Meanwhile callers wait in the kernel's queue. It pauses as well while the
// descriptors left are kept for others (shortage.hpp).
#pragma once

#include <functional>
#include <string>

#include "backends/io/endpoint.hpp"
#include "backends/io/ip_address.hpp"
#include "backends/io/loop.hpp"

namespace headgate::backends {

// Binds and listens. `share`: with SO_REUSEPORT. Throws std::system_error.
int open_listener(const Endpoint& at, bool share = false);
void share_port(int fd);        // SO_REUSEPORT from now on: others of this process may join
std::uint16_t port_of(int fd);  // the one it got, where 0 was asked for

class Listener final : public Loop::Watched {
 public:
  using Accepted = std::function<void(int fd, const IpAddress& from)>;
  // Owns the socket. `accepted` takes each accepted, non-blocking connection; `paused` hears why accepting pauses.
  Listener(Loop& loop, int fd, Accepted accepted, std::function<void(int error)> paused = {});
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // A descriptor of this process was closed: a pause ends in the loop's next turn.
  void descriptor_freed() {
    if (again_.at() != never) again_.set(Time());
  }

 private:
  void on_ready(std::uint32_t events) override;
  void accept_all();
  bool enough_left();

  Loop& loop_;
  int fd_;
  Accepted accepted_;
  std::function<void(int)> paused_;
  Loop::Timer again_;
  bool tight_ = false;  // the descriptors left are others'
};

}  // namespace headgate::backends
