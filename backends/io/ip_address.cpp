#include "backends/io/ip_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace headgate::backends {

namespace {
constexpr std::array<std::uint8_t, 12> v4_front{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  std::array<char, INET6_ADDRSTRLEN + 1> terminated{};
  if (text.size() >= terminated.size()) return std::nullopt;
  std::copy(text.begin(), text.end(), terminated.begin());
  IpAddress out;
  if (::inet_pton(AF_INET, terminated.data(), out.bytes.data() + v4_front.size()) == 1) {
    std::copy(v4_front.begin(), v4_front.end(), out.bytes.begin());
    return out;
  }
  if (::inet_pton(AF_INET6, terminated.data(), out.bytes.data()) == 1) return out;
  return std::nullopt;
}

IpAddress IpAddress::of(const sockaddr* address) {
  IpAddress out;
  if (address->sa_family == AF_INET) {
    std::copy(v4_front.begin(), v4_front.end(), out.bytes.begin());
    std::memcpy(out.bytes.data() + v4_front.size(), &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  } else if (address->sa_family == AF_INET6) {
    std::memcpy(out.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, out.bytes.size());
  }
  return out;
}

bool IpAddress::v4() const { return std::equal(v4_front.begin(), v4_front.end(), bytes.begin()); }

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> out{};
  const int family = v4() ? AF_INET : AF_INET6;
  ::inet_ntop(family, bytes.data() + (v4() ? v4_front.size() : 0), out.data(), out.size());
  return out.data();
}

std::uint64_t IpAddress::subscriber() const {
  std::uint64_t out = 0;
  std::memcpy(&out, bytes.data() + (v4() ? 8 : 0), sizeof out);
  return out;
}

bool IpAddress::shares(const IpAddress& other, unsigned bits) const {
  const unsigned whole = bits / 8, rest = bits % 8;
  if (!std::equal(bytes.begin(), bytes.begin() + whole, other.bytes.begin())) return false;
  return rest == 0 || ((bytes[whole] ^ other.bytes[whole]) >> (8 - rest)) == 0;
}

}  // namespace headgate::backends
