// Who may ask what of the admin listener, as pure functions over a request's head.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headgate::gateway {

enum class AdminPath : std::uint8_t { metrics, state, reload, drain, backend, healthz, readyz };

struct AdminRequest {
  std::string_view method, path;  // path without its query
  std::string_view host;          // of the one Host header; empty: none, or several
  std::string_view origin;        // empty: none
  std::string_view authorization;
  std::string_view admin_header;  // x-headgate-admin
};

struct AdminPlace {
  std::string local_address;  // of this connection, numeric
  std::uint16_t port = 0;
  std::string token;  // empty: none is set
};

// status 0: go on with `path`. Otherwise the answer, with `allow` for a 405.
struct AdminVerdict {
  std::uint16_t status = 0;
  AdminPath path = AdminPath::healthz;
  std::string_view code, message, allow;
  std::string_view name;  // of a path that ends in one: the rest of it
};
AdminVerdict judge(const AdminRequest& request, const AdminPlace& place);

}  // namespace headgate::gateway
