// Why a TLS handshake failed, as a word for metrics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headgate::backends {

enum class TlsFailure : std::uint8_t {
  none,
  plain_http,   // the other side spoke HTTP without TLS
  not_tls,      // or something else
  version,      // nothing in common from TLS 1.2 on
  cipher,       // no cipher in common
  certificate,  // not signed by whom we trust, not for that name, out of its time
  alert,        // the other side refused
  closed,       // the other side went away
  timeout,      // said by who waited
  other,
};
inline constexpr std::size_t tls_failures = 10;
std::string_view name_of(TlsFailure failure);

}  // namespace headgate::backends
