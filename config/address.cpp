#include "config/address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace headgate::config {
namespace {

constexpr std::string_view url_form =
    "must be http://host:port or https://host:port without a path, such as \"http://127.0.0.1:9001\"";
constexpr std::string_view listen_form = "must be address:port, such as \"127.0.0.1:8080\" or \"[::1]:8080\"";

std::string bracketed(const HostPort& at) {
  return at.host.find(':') != std::string::npos ? "[" + at.host + "]" : at.host;
}

template <class T>
Parsed<T> fail(std::string_view problem) {
  return {std::nullopt, std::string(problem)};
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

bool is_v4(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

bool is_v6(const std::string& text) {
  in6_addr address{};
  return inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool is_host_name(std::string_view text) {
  if (text.empty() || text.size() > 253 || text.front() == '.' || text.front() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
  });
}

// Digits and dots only: meant as an IPv4 address, so it must be one.
bool looks_numeric(std::string_view text) { return text.find_first_not_of("0123456789.") == std::string_view::npos; }

struct Split {
  std::string host;
  std::string_view port;
  bool bracketed = false, has_port = false;
};

std::optional<Split> split(std::string_view text) {
  Split out;
  if (!text.empty() && text.front() == '[') {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    out.bracketed = true;
    out.host = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    if (text.empty()) return out;
    if (text.front() != ':') return std::nullopt;
    out.has_port = true;
    out.port = text.substr(1);
    return out;
  }
  const auto colon = text.find(':');
  out.host = text.substr(0, colon);
  out.has_port = colon != std::string_view::npos;
  if (out.has_port) out.port = text.substr(colon + 1);
  return out;
}

}  // namespace

Parsed<HostPort> parse_listen(std::string_view text) {
  const auto parts = split(text);
  if (!parts || !parts->has_port) return fail<HostPort>(listen_form);
  const auto port = parse_port(parts->port);
  if (!port) return fail<HostPort>("must end in a port 0..65535, such as \"127.0.0.1:8080\"");
  if (parts->bracketed ? !is_v6(parts->host) : !is_v4(parts->host)) {
    if (parts->host == "localhost")
      return fail<HostPort>("must be a numeric address: 127.0.0.1 or [::1] for localhost");
    return fail<HostPort>(listen_form);
  }
  return {HostPort{parts->host, *port}, {}};
}

Parsed<HostPort> parse_backend_url(std::string_view text) {
  const bool tls = text.starts_with("https://");
  if (!tls && !text.starts_with("http://")) return fail<HostPort>(url_form);
  text.remove_prefix(tls ? 8 : 7);
  if (text.find('@') != std::string_view::npos) {
    return fail<HostPort>("must not hold a user or password: a key goes into the pool's \"api_key\"");
  }
  if (!text.empty() && text.back() == '/') text.remove_suffix(1);
  if (text.find_first_of("/?#") != std::string_view::npos) return fail<HostPort>(url_form);
  const auto parts = split(text);
  if (!parts) return fail<HostPort>(url_form);
  HostPort at{parts->host, static_cast<std::uint16_t>(tls ? 443 : 80), tls};
  std::transform(at.host.begin(), at.host.end(), at.host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const bool numeric = looks_numeric(at.host);
  const bool good = parts->bracketed ? is_v6(at.host) : numeric ? is_v4(at.host) : is_host_name(at.host);
  if (!good) return fail<HostPort>(url_form);
  if (parts->has_port) {
    const auto port = parse_port(parts->port);
    if (!port || *port == 0) return fail<HostPort>("must have a port 1..65535, such as \"http://127.0.0.1:9001\"");
    at.port = *port;
  }
  return {at, {}};
}

bool is_loopback(std::string_view numeric_address) {
  const std::string text(numeric_address);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string host_port(const HostPort& at) {
  return (at.tls ? "https://" : "") + bracketed(at) + ":" + std::to_string(at.port);
}

std::string authority(const HostPort& at) {
  return at.port == (at.tls ? 443 : 80) ? bracketed(at) : bracketed(at) + ":" + std::to_string(at.port);
}

}  // namespace headgate::config
