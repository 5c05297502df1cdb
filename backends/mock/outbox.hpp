// The order and the pace in which the connections of a thread send what the engines have made for them. A step makes a
// token for each of hundreds of streams at one moment; written as fast as the system takes them, the last ones of a
// burst, and the bursts behind it, would wander by the milliseconds that a write costs more or less from step to step.
// Here each has its turn a fixed time after the one before, a little more than a write costs, so streams keep their
// distance and a slow write delays those few that wait for it. Below some ten at once nothing waits.
#pragma once

#include <cstdint>
#include <deque>

#include "backends/io/loop.hpp"
#include "policies/base/time.hpp"

namespace headgate::mock {

class Connection;

class Outbox {
 public:
  static constexpr Nanos spacing = std::chrono::microseconds(11);
  static constexpr Nanos early = std::chrono::microseconds(100);  // how much before its turn one may be sent

  explicit Outbox(backends::Loop& loop) : timer_(loop, [this] { send(); }) {}

  void put(Connection& connection, Time made);  // no effect while it is in it
  void remove(Connection& connection);          // the same when it is not
  void send();                                  // wakes those whose turn it is; a connection may end in it

 private:
  struct Entry {
    Connection* connection;  // null: removed
    Time turn;
  };
  std::deque<Entry> queue_;
  std::uint64_t sent_ = 0;  // entries that have left it at the front
  Time last_turn_{};
  bool sending_ = false;
  backends::Loop::Timer timer_;
};

}  // namespace headgate::mock
