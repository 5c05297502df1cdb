// A range of addresses as it stands in the configuration: "10.0.0.0/8", "2001:db8::/32", or one address.
#pragma once

#include <string_view>

#include "backends/io/ip_address.hpp"
#include "config/parsed.hpp"

namespace headgate::config {

struct Network {
  backends::IpAddress address;
  unsigned bits = 128;  // of the address as IPv6 has it
  bool contains(const backends::IpAddress& one) const { return one.shares(address, bits); }
};

Parsed<Network> parse_network(std::string_view text);

}  // namespace headgate::config
