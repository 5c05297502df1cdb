// How a request ended, as one word in the access log and in metrics.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace headgate::gateway {

enum class Ending : std::uint8_t {
  ok,         // a backend's answer reached the caller whole, its own 4xx included
  rejected,   // the caller's own fault, said by us (4xx) before any backend worked
  refused,    // our "no" to a good request: full, late, nothing healthy, shutting down
  failed,     // every attempt failed; the caller got the last one's error, or ours
  cut,        // failed after the head went out: one error event, or a connection closed before its end
  cancelled,  // the caller left
};
inline constexpr std::size_t endings = 6;

constexpr std::string_view name_of(Ending ending) {
  constexpr std::array<std::string_view, endings> names{"ok", "rejected", "refused", "failed", "cut", "cancelled"};
  return names[static_cast<std::size_t>(ending)];
}

}  // namespace headgate::gateway
