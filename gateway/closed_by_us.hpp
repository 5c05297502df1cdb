// Why the gateway ended a caller's connection that broke no rule: a word in metrics.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace headgate::gateway {

enum class ClosedByUs : std::uint8_t {
  idle,         // no request within limits.keep_alive
  write_stall,  // took nothing of its answer for limits.write_stall
  unread_body,  // went on writing what was refused: 5 s, or 16 MiB
};
inline constexpr std::size_t closed_by_us = 3;

constexpr std::string_view name_of(ClosedByUs why) {
  constexpr std::array<std::string_view, closed_by_us> names{"idle", "write_stall", "unread_body"};
  return names[static_cast<std::size_t>(why)];
}

}  // namespace headgate::gateway
