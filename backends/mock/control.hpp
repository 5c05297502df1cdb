// The JSON of /control, and of a line of a fault plan.
//   POST {"fault":"reset","after_tokens":3,"count":2}   sets one fault (fields: faults.hpp)
//   POST {"clear":true}, {"clear":"reset"}              clears all, or that one
//   POST {"speed":0.2}, {"slots":8}                     changes how fast it is, how much it does at once, or both
//   POST {"restart":true,"down_ms":2000}                drops all connections, listens again after that time (0) and
//   has
//                                                       forgotten its prefixes
//   GET                                                 the state; a POST is answered with it too
// An unknown fault or field, or one that does not fit, is refused with a message that names it and the nearest known
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "backends/mock/faults.hpp"

namespace headgate::mock {

struct ClearFaults {
  std::optional<FaultKind> kind;  // none: all
};
struct Tuning {                   // what is not set stays as it is
  std::optional<double> speed{};  // of the steps that begin from now on; 0.2: a fifth of the profile's; 0.001..1000
  std::optional<std::uint32_t> slots{};  // 1..65536; more than the profile's come to the profile's
};
struct Restart {
  std::uint32_t down_ms = 0;
};
struct ControlError {
  std::string message, param;
};
using Control = std::variant<Fault, ClearFaults, Tuning, Restart, ControlError>;

Control read_control(std::string_view body);

struct ReplicaState {
  std::uint64_t open = 0;                  // requests in work: read whole, neither answered nor left
  std::uint64_t served = 0;                // answered to the end, whatever the status
  std::uint64_t cancelled = 0;             // left by the caller before the end of the answer
  std::uint64_t faulted = 0;               // answers cut short by a fault
  std::uint64_t connections = 0;           // to the data port, open now
  std::uint64_t accepted = 0;              // connections since the start
  std::uint32_t running = 0, waiting = 0;  // in the engine
  double speed = 1;
  std::uint32_t slots = 0;
  bool listening = true;
};
std::string print_state(const ReplicaState& state, const FaultSet& faults);

}  // namespace headgate::mock
