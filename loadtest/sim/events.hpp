// What is to happen in virtual time, the soonest first, and of the same instant in the order it was put in.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "policies/base/time.hpp"

namespace headgate::loadtest {

struct SimEvent {
  enum class What : std::uint8_t {
    arrival,      // of request `who`
    again,        // its caller's own retry
    patience,     // of its caller is at its end
    submit,       // its attempt reaches the engine
    engine,       // engine `who` has something to do
    first_token,  // of request `who`, at the gateway
    ended,        // its answer's end, at the gateway
    limit,        // one of its attempt's time limits
    fault,        // number `who` of the settings
    change,       // the same: to the gateway
    progress,     // of all streams is reported
    probe,        // of endpoint `who`; serial: Probing's
    tick,         // the Dispatcher's own
  };
  Time at{};
  What what = What::tick;
  std::uint32_t who = 0;
  std::uint32_t serial = 0;  // of the request's attempt; of another one the event is stale
};

class SimEvents {
 public:
  void put(const SimEvent& event) {  // at never: it does not happen
    if (event.at != never) heap_.push({event, next_++});
  }
  bool empty() const { return heap_.empty(); }
  SimEvent take() {
    const SimEvent event = heap_.top().event;
    heap_.pop();
    return event;
  }

 private:
  struct Entry {
    SimEvent event;
    std::uint64_t order = 0;
    friend bool operator<(const Entry& a, const Entry& b) {  // the greatest is taken
      return a.event.at != b.event.at ? a.event.at > b.event.at : a.order > b.order;
    }
  };
  std::priority_queue<Entry> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace headgate::loadtest
