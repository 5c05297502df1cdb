#include "config/network.hpp"

#include <charconv>

namespace headgate::config {

namespace {
constexpr const char* what_is_right = "must be an address or a network, such as \"10.0.0.0/8\" or \"2001:db8::/32\"";
}

Parsed<Network> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = backends::IpAddress::parse(text.substr(0, slash));
  if (!address) return {std::nullopt, what_is_right};
  Network out{*address, 128};
  if (slash == std::string_view::npos) return {out, {}};
  const unsigned most = address->v4() ? 32 : 128;
  const char* const end = text.data() + text.size();
  unsigned bits = 0;
  const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, bits);
  if (error != std::errc() || stop != end || bits > most) return {std::nullopt, what_is_right};
  out.bits = bits + 128 - most;
  for (unsigned bit = out.bits; bit < 128; ++bit) {
    if ((out.address.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0) {
      return {std::nullopt,
              "has bits set behind its /" + std::to_string(bits) + ": must be the network's first address"};
    }
  }
  return {out, {}};
}

}  // namespace headgate::config
