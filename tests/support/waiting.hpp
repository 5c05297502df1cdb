// Time in tests over real sockets: the clock, bounds that grow under sanitizers, an event that a script and a test
// share, and bounded polling for what can only be looked at.
//
//   Event go;                      // the test calls go.set(), a script waits with exchange.wait_for(go, 10s)
//   EXPECT_LE(late, scaled(100ms));               // 100 ms, 500 ms in an instrumented build
//   EXPECT_TRUE(eventually(2s, [&] { return upstream.open_now() == 0; }));
#pragma once

#include <chrono>
#include <functional>

#include "policies/base/time.hpp"
#include "support/product.hpp"

namespace headgate::support {

using namespace std::chrono_literals;

inline const int time_factor = product_sanitized() ? 5 : 1;

inline Time now() { return std::chrono::steady_clock::now(); }
inline Nanos scaled(Nanos bound) { return bound * time_factor; }
constexpr double to_ms(Nanos span) { return static_cast<double>(span.count()) / 1e6; }

// A latch that threads can wait for together with a socket: set once, seen by all from then on.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void set();
  bool wait(Nanos within);                        // true if set in time
  int descriptor() const { return descriptor_; }  // readable once set

 private:
  int descriptor_;
};

// Asks every 10 ms, at least twice; true as soon as `holds` is. `within` is not scaled: give a generous bound.
bool eventually(Nanos within, const std::function<bool()>& holds);

}  // namespace headgate::support
