// The configuration file as structs. The member initialiser is the only place a default is written; names, units,
// ranges and one-line docs are in the fields() tables that config/ keeps beside these. Options of a class in policies/
// live beside that class (policies/plan.hpp) and are bound here by name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/plan.hpp"

namespace headgate::config {

using namespace std::chrono_literals;

// Prints as ***; the text is had only by asking for it.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  const std::string& reveal() const { return text_; }
  bool empty() const { return text_.empty(); }
  friend bool operator==(const Secret&, const Secret&) = default;

 private:
  std::string text_;
};

struct Bytes {
  std::uint64_t count = 0;
  friend auto operator<=>(const Bytes&, const Bytes&) = default;
};

struct ListenTlsOptions {   // both or neither
  std::string certificate;  // PEM file: the certificate, then its chain
  std::string key;          // PEM file, without a passphrase
};

struct ListenOptions {
  std::string data = "127.0.0.1:8080";  // address:port, [v6]:port
  std::string admin = "127.0.0.1:9090";
  bool allow_anonymous = false;  // serve callers without a key
  bool insecure = false;         // allow_anonymous on an address that is not loopback
  std::uint32_t connections_max = 10000;
  std::optional<std::uint32_t> connections_per_address;  // not counted for trusted proxies
  std::vector<std::string> trusted_proxies;              // whose X-Forwarded-For is believed
  ListenTlsOptions tls;
};

struct AdminOptions {
  Secret token;  // bearer token for the admin listener; required when it is not on loopback
};

struct LimitOptions {
  Bytes head{32 << 10};
  Nanos head_time = 10s;
  Bytes body{32 << 20};
  Nanos body_idle = 5s;          // a byte at least this often
  Bytes body_rate_min{1 << 10};  // per second on average, after the first 20 s
  Bytes backend_head{64 << 10};
  std::optional<Bytes> bodies;          // sum of all bodies held; default a quarter of the memory there is
  std::optional<Bytes> bodies_per_key;  // of them, one key's; default half of bodies, at least one body
  Nanos keep_alive = 75s;               // idle callers
  Nanos write_stall = 30s;              // a caller that reads nothing
};

struct CorsOptions {
  std::vector<std::string> origins;  // of pages that may call from a browser; "*": any; empty: none
  Nanos max_age = 10min;             // how long a browser may remember a preflight's answer
};

struct UpstreamOptions {
  Nanos idle = 30s;             // idle connections are closed after this
  std::uint32_t idle_max = 64;  // idle connections kept per backend and worker
};

struct LogOptions {
  std::string level = "info";     // trace, debug, info, warn, error
  std::string access = "stdout";  // stdout, stderr, off, or a file name
};

struct KeyOptions {
  std::string name;                 // shown in the access log and metrics
  std::string sha256;               // hex digest of the key, or
  Secret key;                       // the key itself, usually "${ENV}"
  std::vector<std::string> routes;  // empty: every route
  std::string tenant{};             // empty: one of the key's own name
};

struct TenantOptions {
  std::uint32_t weight = 1;
  policies::Class klass = policies::Class::interactive;
  policies::TenantLimits limits;
};

struct ClassOptions {  // absent: policies::default_classes()
  std::optional<std::uint32_t> weight;
  std::optional<double> floor;
  std::optional<Nanos> wait_max;
  policies::BudgetOptions budget;
};

struct ClassesOptions {
  ClassOptions interactive, standard, batch, sheddable;
};

struct ProbeOptions {
  std::string path = "/health";
  Nanos interval = 5s;
  Nanos timeout = 2s;
  std::uint32_t fall = 3;
  std::uint32_t rise = 2;
};

struct PriceOptions {  // USD per million tokens
  double input = 0, cached = 0, output = 0;
};

struct PoolTlsOptions {     // for backends whose url is https
  std::string ca;           // PEM file with whom to trust; empty: whom the system trusts
  std::string server_name;  // that their certificates must be for; empty: the host of the url
  bool verify = true;
};

struct BackendOptions {
  std::string name;
  std::string url;  // http://host:port or https://host:port, no path
  std::uint32_t weight = 1;
  std::uint32_t slots = 16;                        // requests in flight at once; the same url elsewhere shares them
  std::optional<std::uint32_t> connections_max{};  // open at once, idle ones too, all workers together; shared likewise
};

struct PoolOptions {
  std::string model;  // the name its backends know; empty: what the caller wrote
  Secret api_key;     // sent as Authorization: Bearer
  bool forward_client_auth = false;
  bool reports_usage = true;  // backends accept stream_options.include_usage
  policies::Balance balance = policies::Balance::p2c;
  std::vector<BackendOptions> backends;
  PoolTlsOptions tls;
  policies::LimitOptions limit;
  policies::QueueOptions queue;
  policies::HealthOptions health;  // its probe_* members are set from `probe`
  ProbeOptions probe;
  PriceOptions price;
  double quality = 0.5;      // 0..1
  std::uint32_t weight = 1;  // under PoolOrder::weighted
};

struct RouteOptions {
  std::vector<std::string> pools;
  policies::PoolOrder order = policies::PoolOrder::priority;
  policies::BudgetOptions budget;
  Nanos head_hold = 75ms;  // after a backend's head nothing is sent for this long, so a failure stays unseen
  policies::TimeoutOptions timeouts;
  policies::RetryOptions retry;
  std::optional<std::uint32_t> default_max_tokens;
};

struct Options {
  std::uint32_t workers = 1;
  Nanos drain = 30s;  // SIGTERM: streams may run on for this long
  std::uint64_t seed = 1;
  ListenOptions listen;
  AdminOptions admin;
  LimitOptions limits;
  CorsOptions cors;
  UpstreamOptions upstream;
  LogOptions log;
  std::vector<KeyOptions> keys;
  std::map<std::string, TenantOptions> tenants;
  ClassesOptions classes;
  std::map<std::string, PoolOptions> pools;
  std::map<std::string, RouteOptions> routes;  // public model name -> route
};

}  // namespace headgate::config
