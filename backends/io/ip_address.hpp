// An IP address without a port; IPv4 as IPv6 has it (::ffff:1.2.3.4), so that both are told apart by value alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

struct sockaddr;

namespace headgate::backends {

struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  static std::optional<IpAddress> parse(std::string_view text);  // "1.2.3.4", "::1"; nothing else
  static IpAddress of(const sockaddr* address);

  bool v4() const;
  std::string text() const;
  // Whom to count as one: an IPv4 address, an IPv6 network of 64 bits (what one subscriber has at least).
  std::uint64_t subscriber() const;
  // The first `bits` of 128 are the same.
  bool shares(const IpAddress& other, unsigned bits) const;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

}  // namespace headgate::backends
