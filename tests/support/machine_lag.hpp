// How late the machine itself was while this lived: a thread that wants to run every 5 ms notes the longest that it had
// to wait beyond that. A caller, the gateway and an upstream have to be woken in turn before a moment can be seen, so
// upper bounds on measured time take three times that on top; it is next to nothing on a machine with time to spare.
//
//   MachineLag lag;
//   const Reply reply = ask_once(..);
//   EXPECT_LE(to_ms(reply.took()), to_ms(1s + scaled(150ms) + lag.slack()));
#pragma once

#include <atomic>
#include <thread>

#include "support/waiting.hpp"

namespace headgate::support {

class MachineLag {
 public:
  MachineLag();
  Nanos slack() const { return Nanos{3 * worst_.load()}; }

 private:
  void run(const std::stop_token& stop);

  std::atomic<std::int64_t> worst_{0};  // ns
  std::jthread thread_;
};

}  // namespace headgate::support
