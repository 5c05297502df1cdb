// The fields that concern this process: listeners, limits, logs, keys. The root of the file is in describe_pools.hpp.
#pragma once

#include <cstdint>

#include "config/field.hpp"
#include "config/forms.hpp"
#include "config/options.hpp"

namespace headgate::config {

template <>
struct Describe<ListenTlsOptions> {
  static constexpr auto fields() {
    using T = ListenTlsOptions;
    return std::tuple{
        absent_means("none: plain HTTP",
                     field("certificate", &T::certificate,
                           "PEM file with the certificate and its chain. Read again at each reload.", forms::file)),
        absent_means("none: plain HTTP",
                     field("key", &T::key, "PEM file with its key, without a passphrase.", forms::file)),
    };
  }
};

template <>
struct Describe<ListenOptions> {
  static constexpr auto fields() {
    using L = ListenOptions;
    return std::tuple{
        field("data", &L::data, "Where callers connect; port 0 takes any free one.", forms::listen),
        field("admin", &L::admin, "Where /metrics and /admin are served.", forms::listen),
        field("allow_anonymous", &L::allow_anonymous, "Serve callers that bring no key."),
        field("insecure", &L::insecure, "Allow allow_anonymous on an address that is not loopback."),
        field("connections_max", &L::connections_max, "Callers connected at once.", Range<std::uint32_t>{1, 1'000'000}),
        absent_means(
            "no limit but connections_max",
            field("connections_per_address", &L::connections_per_address,
                  "Callers connected at once from one IPv4 address or IPv6 /64; trusted proxies may have more.",
                  Range<std::uint32_t>{1, 1'000'000})),
        absent_means("none", field("trusted_proxies", &L::trusted_proxies,
                                   "Networks of proxies whose X-Forwarded-For names the client.",
                                   List<Text>{1, 100, forms::network})),
        field("tls", &L::tls, "TLS towards callers."),
    };
  }
};

template <>
struct Describe<AdminOptions> {
  static constexpr auto fields() {
    return std::tuple{
        absent_means("none", field("token", &AdminOptions::token,
                                   "Bearer token for the admin listener; required when that is not on loopback.",
                                   forms::credential)),
    };
  }
};

template <>
struct Describe<LimitOptions> {
  static constexpr auto fields() {
    using L = LimitOptions;
    constexpr Range<Nanos> wait{1ms, 24h};
    return std::tuple{
        field("head", &L::head, "Request line and headers of a caller.", Range<Bytes>{{1 << 10}, {1 << 20}}),
        field("head_time", &L::head_time, "Time for a caller to send them.", wait),
        field("body", &L::body, "Body of one request.", Range<Bytes>{{1 << 10}, {1ull << 30}}),
        field("body_idle", &L::body_idle, "Longest silence inside a caller's body.", wait),
        field("body_rate_min", &L::body_rate_min, "Bytes per second a body must average, after its first 20 s.",
              Range<Bytes>{{0}, {1ull << 30}}),
        field("backend_head", &L::backend_head, "Status line and headers of a backend.",
              Range<Bytes>{{1 << 10}, {1 << 20}}),
        absent_means(
            "a quarter of RAM or of the cgroup's limit, whichever is lower",
            field("bodies", &L::bodies, "Sum of all bodies held at once.", Range<Bytes>{{1 << 10}, {1ull << 44}})),
        absent_means("half of bodies, but room for one body",
                     field("bodies_per_key", &L::bodies_per_key,
                           "Of them, those of one key; callers without a key share one part.",
                           Range<Bytes>{{1 << 10}, {1ull << 44}})),
        field("keep_alive", &L::keep_alive, "A caller's idle connection is closed after this.", wait),
        field("write_stall", &L::write_stall, "A caller that reads nothing for this long is cut off.", wait),
    };
  }
};

template <>
struct Describe<CorsOptions> {
  static constexpr auto fields() {
    using C = CorsOptions;
    return std::tuple{
        absent_means("none",
                     field("origins", &C::origins, "Origins of the pages that may call from a browser; \"*\": any.",
                           List<Text>{1, 100, forms::origin})),
        field("max_age", &C::max_age, "How long a browser may remember the answer to its preflight request.",
              Range<Nanos>{0s, 24h}),
    };
  }
};

template <>
struct Describe<UpstreamOptions> {
  static constexpr auto fields() {
    using U = UpstreamOptions;
    return std::tuple{
        field("idle", &U::idle, "Idle connections to backends are closed after this.", Range<Nanos>{1ms, 24h}),
        field("idle_max", &U::idle_max, "Idle connections kept per backend and worker.",
              Range<std::uint32_t>{0, 10'000}),
    };
  }
};

template <>
struct Describe<LogOptions> {
  static constexpr auto fields() {
    return std::tuple{
        field("level", &LogOptions::level, "Least important messages that are written.",
              OneOf{"trace", "debug", "info", "warn", "error"}),
        field("access", &LogOptions::access, "Where the line per request goes.", forms::log),
    };
  }
};

template <>
struct Describe<KeyOptions> {
  static constexpr auto fields() {
    using K = KeyOptions;
    return std::tuple{
        required(field("name", &K::name, "Shown in the access log and metrics.", forms::name)),
        absent_means("given by key",
                     field("sha256", &K::sha256, "Digest of the key. Either this or key.", forms::digest)),
        absent_means("given by sha256",
                     field("key", &K::key, "The key itself, usually \"${ENV}\".", forms::credential)),
        absent_means("every route",
                     field("routes", &K::routes, "Routes this key may use.", List<Text>{1, 1000, forms::model})),
        absent_means(
            "one of the key's name",
            field("tenant", &K::tenant, "Who pays: a name in tenants. Several keys may share it.", forms::name)),
    };
  }
};

}  // namespace headgate::config
