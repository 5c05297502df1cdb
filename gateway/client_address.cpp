#include "gateway/client_address.hpp"

#include <algorithm>

#include "backends/wire/ascii.hpp"

namespace headgate::gateway {

// From the end: each proxy has written whom it heard, and what stands before the first that is not trusted may be made
// up.
void find_client(Exchange& x) {
  x.request.client = x.peer.text;
  const auto& trusted = x.request.catalog->trusted_proxies;
  const auto is_trusted = [&](const backends::IpAddress& address) {
    return std::any_of(trusted.begin(), trusted.end(),
                       [&](const config::Network& one) { return one.contains(address); });
  };
  if (!is_trusted(x.peer.address)) return;
  for (auto field = x.head.fields.rbegin(); field != x.head.fields.rend(); ++field) {
    if (field->id != wire::Name::other || !wire::equals_ignoring_case(field->name, "x-forwarded-for")) continue;
    for (std::string_view left = field->value; !left.empty();) {
      const std::size_t comma = left.rfind(',');
      const std::string_view last = wire::trim(comma == std::string_view::npos ? left : left.substr(comma + 1));
      left = comma == std::string_view::npos ? std::string_view() : left.substr(0, comma);
      const auto address = backends::IpAddress::parse(last);
      if (!address) return;  // not an address: nothing before it is worth more
      x.named_client.assign(last);
      x.request.client = x.named_client;
      if (!is_trusted(*address)) return;
    }
  }
}

}  // namespace headgate::gateway
