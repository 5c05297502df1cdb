// The fields of pools and routes, and the root of the file.
#pragma once

#include <cstdint>

#include "config/bind_policies.hpp"
#include "config/describe_gateway.hpp"

namespace headgate::config {

template <>
struct Describe<ProbeOptions> {
  static constexpr auto fields() {
    using P = ProbeOptions;
    constexpr Range<std::uint32_t> count{1, 100};
    return std::tuple{
        field("path", &P::path, "What is asked for; a 2xx answer is good. It should cost no tokens.", forms::path),
        field("interval", &P::interval, "From one probe to the next.", Range<Nanos>{10ms, 1h}),
        field("timeout", &P::timeout, "Longest wait for its answer; at most the interval: a short interval needs both.",
              Range<Nanos>{1ms, 10min}),
        field("fall", &P::fall, "Missed probes in a row that mean down.", count),
        field("rise", &P::rise, "Good probes in a row that mean up again.", count),
    };
  }
};

template <>
struct Describe<PriceOptions> {
  static constexpr auto fields() {
    constexpr Range<double> usd{0, 1e6};
    return std::tuple{
        field("input", &PriceOptions::input, "USD per million prompt tokens.", usd),
        field("cached", &PriceOptions::cached, "USD per million prompt tokens found in a cache.", usd),
        field("output", &PriceOptions::output, "USD per million generated tokens.", usd),
    };
  }
};

template <>
struct Describe<BackendOptions> {
  static constexpr auto fields() {
    using B = BackendOptions;
    return std::tuple{
        absent_means("b1, b2, ... by place", field("name", &B::name, "Unique in its pool.", forms::name)),
        required(
            field("url", &B::url, "Where the model server listens; no path, port 80 when none is given.", forms::url)),
        field("weight", &B::weight, "Share of the requests under balance \"weighted\".", Range<std::uint32_t>{1, 1000}),
        field("slots", &B::slots, "Requests in flight at once; the same url in another pool shares them.",
              Range<std::uint32_t>{1, 100'000}),
        absent_means(
            "slots and what upstream.idle_max keeps",
            field("connections_max", &B::connections_max,
                  "Connections open at once over all workers, idle ones too, probes not. It bounds slots as well.",
                  Range<std::uint32_t>{1, 100'000})),
    };
  }
};

template <>
struct Describe<PoolTlsOptions> {
  static constexpr auto fields() {
    using T = PoolTlsOptions;
    return std::tuple{
        absent_means("whom the system trusts",
                     field("ca", &T::ca,
                           "PEM file with the authorities, or the certificates, to trust. Read again at each reload.",
                           forms::file)),
        absent_means("the host of the url", field("server_name", &T::server_name,
                                                  "The name their certificates must be for.", forms::server_name)),
        field("verify", &T::verify, "false: any certificate will do, also that of somebody in between."),
    };
  }
};

template <>
struct Describe<PoolOptions> {
  static constexpr auto fields() {
    using P = PoolOptions;
    return std::tuple{
        absent_means("as the caller wrote it",
                     field("model", &P::model, "The name its backends know the model by.", forms::model)),
        absent_means("none is sent", field("api_key", &P::api_key, "Sent to its backends as Authorization: Bearer.",
                                           forms::credential)),
        field("forward_client_auth", &P::forward_client_auth, "Send the caller's own credentials on instead."),
        field("reports_usage", &P::reports_usage, "Its backends accept stream_options.include_usage."),
        field("balance", &P::balance, "How a backend is chosen."),
        field("tls", &P::tls, "TLS towards backends whose url is https."),
        required(field("backends", &P::backends, "Servers that answer alike, at one price and quality.",
                       List<Any>{1, 1000, {}})),
        field("limit", &P::limit, "How many requests a backend has at once, up to its slots."),
        field("queue", &P::queue, "Requests that wait for a free slot."),
        field("health", &P::health, "What failures and refusals of a backend lead to."),
        field("probe", &P::probe, "The health check sent to each backend."),
        field("price", &P::price, "What its tokens cost."),
        field("quality", &P::quality, "How good its answers are; compared with min_quality.", Range<double>{0, 1}),
        field("weight", &P::weight, "Its share of the requests of routes whose order is weighted.",
              Range<std::uint32_t>{1, 1000}),
    };
  }
};

template <>
struct Describe<RouteOptions> {
  static constexpr auto fields() {
    using R = RouteOptions;
    return std::tuple{
        required(field("pools", &R::pools, "Pools that may serve it.", List<Text>{1, 8, forms::name})),
        field("order", &R::order,
              "Which pool is used: as written; the cheapest in time; the soonest predicted; drawn by weight."),
        field("budget", &R::budget, "What its requests must make, unless they ask for less themselves."),
        field("head_hold", &R::head_hold,
              "Nothing is sent to the caller for this long after a backend's head, so that a failure stays unseen.",
              Range<Nanos>{0s, 10s}),
        field("timeouts", &R::timeouts, "Limits of one attempt."),
        field("retry", &R::retry, "When another backend is tried."),
        absent_means("256", field("default_max_tokens", &R::default_max_tokens,
                                  "Tokens of an answer whose caller sets no limit, until 20 answers have told better.",
                                  Range<std::uint32_t>{1, 10'000'000})),
    };
  }
};

template <>
struct Describe<TenantOptions> {
  static constexpr auto fields() {
    using T = TenantOptions;
    return std::tuple{
        field("weight", &T::weight,
              "Share of the tokens served while several tenants wait; raise it for who pays more.",
              Range<std::uint32_t>{1, 1000}),
        field("class", &T::klass, "Best class its requests may have; callers may ask for a lower one by header."),
        field("limits", &T::limits, "What it may have; more is refused with 429."),
    };
  }
};

template <>
struct Describe<ClassOptions> {
  static constexpr auto fields() {
    using C = ClassOptions;
    return std::tuple{
        absent_means("8, 4, 2, 1 by class",
                     field("weight", &C::weight, "Share of the tokens served while several classes wait.",
                           Range<std::uint32_t>{1, 100'000})),
        absent_means("0.5, 0.2, 0.05, 0 by class",
                     field("floor", &C::floor, "Least such share, whatever the weights; together at most 1.",
                           Range<double>{0, 1})),
        absent_means("the pool's queue.wait_max",
                     field("wait_max", &C::wait_max, "Longest wait for a free slot.", Range<Nanos>{0s, 1h})),
        field("budget", &C::budget, "As a route's; the shorter one counts."),
    };
  }
};

template <>
struct Describe<ClassesOptions> {
  static constexpr auto fields() {
    using C = ClassesOptions;
    return std::tuple{
        field("interactive", &C::interactive, "Somebody waits for it. What a request is unless it says otherwise."),
        field("standard", &C::standard, "A program waits for it."),
        field("batch", &C::batch, "Work that may take its time."),
        field("sheddable", &C::sheddable, "Nobody minds if it is refused; it has no floor."),
    };
  }
};

template <>
struct Describe<Options> {
  static constexpr auto fields() {
    using O = Options;
    return std::tuple{
        field("workers", &O::workers, "Threads that serve callers.", Range<std::uint32_t>{1, 256}),
        field("drain", &O::drain, "After SIGTERM, requests in flight may run on for this long.", Range<Nanos>{0s, 24h}),
        field("seed", &O::seed, "Of every random choice.", Range<std::uint64_t>{0, (1ull << 53) - 1}),
        field("listen", &O::listen, "Addresses and who may connect."),
        field("admin", &O::admin, "The admin listener."),
        field("limits", &O::limits, "What one caller or backend may take up."),
        field("cors", &O::cors, "Web pages that may call from a browser."),
        field("upstream", &O::upstream, "Connections to backends."),
        field("log", &O::log, "What is written where."),
        field("keys", &O::keys, "Who may call; required unless allow_anonymous is set.", List<Any>{0, 10'000, {}}),
        field("tenants", &O::tenants,
              "Who pays for requests: weights and limits. \"anonymous\": callers without a key.",
              Named{0, 100'000, forms::name, "TENANT"}),
        field("classes", &O::classes, "What a class of requests is worth while requests wait."),
        required(field("pools", &O::pools, "Groups of model servers.", Named{1, 1000, forms::name, "POOL"})),
        required(field("routes", &O::routes, "Public model names: what callers write as \"model\".",
                       Named{1, 1000, forms::model, "MODEL"})),
    };
  }
};

}  // namespace headgate::config
