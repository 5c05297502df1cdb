// An IP address and port, as the system calls take it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

namespace headgate::backends {

class Endpoint {
 public:
  // Numeric, IPv4 or IPv6; nullopt: it is neither.
  static std::optional<Endpoint> numeric(const std::string& host, std::uint16_t port);
  Endpoint(const sockaddr* address, socklen_t size);

  std::uint16_t port() const;
  int family() const { return storage_.ss_family; }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }

 private:
  Endpoint() = default;
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

}  // namespace headgate::backends
