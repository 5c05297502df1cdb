// Idle keep-alive connections to model servers, one pool per worker: last in, first out; closed after `idle`; a
// connection that ended or sent something while idle is never handed out. Keys are the caller's dense endpoint numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/io/link.hpp"
#include "backends/io/wheel.hpp"

namespace headgate::backends {

struct UpstreamPoolOptions {
  Nanos idle = std::chrono::seconds(30);
  std::size_t idle_max = 64;  // per endpoint; the oldest goes first
};

class UpstreamPool {
 public:
  UpstreamPool(Wheel& wheel, UpstreamPoolOptions options);
  void options(UpstreamPoolOptions options) { options_ = options; }

  LinkPtr take(std::uint32_t endpoint);  // null: none idle, dial
  void give(std::uint32_t endpoint, LinkPtr link, Time now);
  void close_all();
  std::size_t idle() const;

 private:
  struct Idle {
    LinkPtr link;
    Time since;
  };
  void sweep(Time now);

  UpstreamPoolOptions options_;
  std::vector<std::vector<Idle>> by_endpoint_;
  Alarm sweeper_;
};

}  // namespace headgate::backends
