// Network addresses as they stand in the configuration: where we listen ("127.0.0.1:8080", "[::1]:8080": a numeric
// address, port 0 for any free one) and where a backend is ("http://host:port", port 80 when absent, or
// "https://host:port", port 443 when absent; no path).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "config/parsed.hpp"

namespace headgate::config {

struct HostPort {
  std::string host;  // an IPv6 address stands without its brackets
  std::uint16_t port = 0;
  bool tls = false;  // of a backend: https
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

Parsed<HostPort> parse_listen(std::string_view text);
Parsed<HostPort> parse_backend_url(std::string_view text);  // host in lower case

bool is_loopback(std::string_view numeric_address);

std::string authority(const HostPort& at);  // for a Host header: without the port when it is the scheme's own
std::string host_port(
    const HostPort& at);  // always with the port, behind "https://" if so; the identity of an endpoint

}  // namespace headgate::config
