#include "gateway/admin_rules.hpp"

#include <openssl/crypto.h>

#include <array>

#include "backends/wire/head.hpp"
#include "config/address.hpp"

namespace headgate::gateway {
namespace {

struct Row {
  std::string_view path, method;
  AdminPath what;
  bool open = false;   // needs no token
  bool named = false;  // the path goes on with a name
};

constexpr std::array rows{
    Row{"/metrics", "GET", AdminPath::metrics},
    Row{"/admin/state", "GET", AdminPath::state},
    Row{"/admin/reload", "POST", AdminPath::reload},
    Row{"/admin/drain", "POST", AdminPath::drain},
    Row{"/healthz", "GET", AdminPath::healthz, true},
    Row{"/readyz", "GET", AdminPath::readyz, true},
    Row{"/admin/backends/", "POST", AdminPath::backend, false, true},
};

const Row* find(std::string_view path) {
  for (const Row& row : rows) {
    if (row.named ? path.starts_with(row.path) : row.path == path) return &row;
  }
  return nullptr;
}

// "name:port", "[v6]:port" and both without port; empty when the port is not ours. Port 80 may be left out by a
// client of http, so an absent port passes.
std::string_view host_without_port(std::string_view host, std::uint16_t port) {
  std::size_t colon = host.rfind(':');
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return {};
    colon = end + 1 < host.size() ? end + 1 : std::string_view::npos;
    if (colon != std::string_view::npos && host[colon] != ':') return {};
  }
  if (colon == std::string_view::npos) return host;
  if (host.substr(colon + 1) != std::to_string(port)) return {};
  return host.substr(0, colon);
}

bool is_ours(std::string_view host, const AdminPlace& place) {
  std::string_view name = host_without_port(host, place.port);
  if (name.starts_with('[')) name = name.substr(1, name.size() - 2);
  if (name.empty()) return false;
  return wire::equals_ignoring_case(name, "localhost") || config::is_loopback(name) || name == place.local_address;
}

bool has_token(const AdminRequest& request, const AdminPlace& place) {
  constexpr std::string_view scheme = "bearer ";
  std::string_view given = request.authorization;
  if (place.token.empty() || given.size() != scheme.size() + place.token.size()) return false;
  if (!wire::equals_ignoring_case(given.substr(0, scheme.size()), scheme)) return false;
  given.remove_prefix(scheme.size());
  return CRYPTO_memcmp(given.data(), place.token.data(), given.size()) == 0;
}

}  // namespace

AdminVerdict judge(const AdminRequest& request, const AdminPlace& place) {
  const bool authorized = has_token(request, place);
  // On a public listener the names it is reached by are not known here; the token says enough.
  const bool any_name = authorized && !config::is_loopback(place.local_address);
  if (request.host.empty() || (!any_name && !is_ours(request.host, place))) {
    return {403, {}, "foreign_host", "Host must be localhost or the address of this listener", {}, {}};
  }
  constexpr std::string_view scheme = "http://";
  if (!request.origin.empty() &&
      (!request.origin.starts_with(scheme) || request.origin.substr(scheme.size()) != request.host)) {
    return {403, {}, "foreign_origin", "Origin must be absent or the same as Host", {}, {}};
  }
  const Row* row = find(request.path);
  if (row == nullptr) return {404, {}, "not_found", "There is no such path on the admin listener", {}, {}};
  if (request.method != row->method) {
    return {405, {}, "method_not_allowed", "The method is not allowed here", row->method, {}};
  }
  if (row->open) return {0, row->what, {}, {}, {}, {}};
  if (!place.token.empty() && !authorized) {
    return {401, {}, "invalid_token", "Send Authorization: Bearer with the admin token", {}, {}};
  }
  if (row->method == "POST" && !authorized && request.admin_header != "1") {
    return {403, {}, "admin_header_missing", "Send the header x-headgate-admin: 1", {}, {}};
  }
  return {0, row->what, {}, {}, {}, row->named ? request.path.substr(row->path.size()) : std::string_view()};
}

}  // namespace headgate::gateway
