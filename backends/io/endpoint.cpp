#include "backends/io/endpoint.hpp"

#include <arpa/inet.h>

#include <cstring>

namespace headgate::backends {

Endpoint::Endpoint(const sockaddr* address, socklen_t size) : size_(size) { std::memcpy(&storage_, address, size); }

std::optional<Endpoint> Endpoint::numeric(const std::string& host, std::uint16_t port) {
  sockaddr_in four{};
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    return Endpoint(reinterpret_cast<const sockaddr*>(&four), sizeof four);
  }
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    return Endpoint(reinterpret_cast<const sockaddr*>(&six), sizeof six);
  }
  return std::nullopt;
}

std::uint16_t Endpoint::port() const {
  // the port stands at the same place in both
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

}  // namespace headgate::backends
