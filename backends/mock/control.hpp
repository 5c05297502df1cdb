// The JSON of /control.
//   POST {"fault":"reset","after_tokens":3,"count":2}   sets one fault (fields: faults.hpp)
//   POST {"clear":true}                                 clears all
//   GET                                                 the state; a POST is answered with it too
// An unknown fault or field, or one that does not fit, is refused with a message that names it and the nearest known
// one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "backends/mock/faults.hpp"

namespace headgate::mock {

struct ClearFaults {};
struct ControlError {
  std::string message, param;
};
using Control = std::variant<Fault, ClearFaults, ControlError>;

Control read_control(std::string_view body);

struct ReplicaState {
  std::uint64_t open = 0;                  // requests in work: read whole, neither answered nor left
  std::uint64_t served = 0;                // answered to the end, whatever the status
  std::uint64_t cancelled = 0;             // left by the caller before the end of the answer
  std::uint64_t faulted = 0;               // answers cut short by a fault
  std::uint64_t connections = 0;           // to the data port, open now
  std::uint64_t accepted = 0;              // connections since the start
  std::uint32_t running = 0, waiting = 0;  // in the engine
  bool listening = true;
};
std::string print_state(const ReplicaState& state, const FaultPlan& plan);

}  // namespace headgate::mock
