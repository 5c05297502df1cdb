// A loaded and checked configuration in the form the gateway uses: looked up by name or id, immutable, one per version.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/connection_cap.hpp"
#include "backends/io/addresses.hpp"
#include "backends/io/tls_context.hpp"
#include "config/network.hpp"
#include "config/options.hpp"
#include "policies/plan.hpp"

namespace headgate::config {

// Where a backend is and how it is spoken to.
struct Target {
  policies::BackendId id{};
  policies::EndpointId endpoint{};
  std::string pool, name;  // name: "pool/backend", the value of x-headgate-backend
  std::string host;
  std::uint16_t port = 0;
  std::shared_ptr<const backends::TlsPeer> tls;          // null: plain HTTP
  std::shared_ptr<backends::ConnectionCap> connections;  // of the endpoint, for the life of the process
  std::uint32_t connections_max = 0;                     // 0: no cap
  std::shared_ptr<backends::Addresses> addresses;  // of a numeric host known from the start, of a name when looked up
  std::string authority;                           // Host header: host, or host:port when the port is not the scheme's
  std::string model;                               // empty: leave the caller's
  std::string authorization;                       // "Bearer ..." or empty
  bool forward_client_auth = false;
  bool reports_usage = true;
  PriceOptions price;
  std::vector<std::string> never_shown;  // host:port, host, key: error bodies that contain one are replaced
};

struct ProbeTarget {
  policies::EndpointId endpoint{};
  std::string host;
  std::uint16_t port = 0;
  std::string authority, name;  // name: of the first backend at this endpoint
  std::shared_ptr<const backends::TlsPeer> tls;
  ProbeOptions probe;
};

struct Route {
  policies::RouteId id{};
  std::string name;
  Nanos head_hold{};
  bool after_delivery = true;  // what a backend may have received may be sent again
};

struct Key {
  std::string name;
  std::array<std::uint8_t, 32> sha256{};
  bool every_route = false;
  std::vector<policies::RouteId> routes;  // sorted
  policies::TenantId tenant{};
  std::shared_ptr<std::atomic<std::uint64_t>> body_bytes;  // held by its requests; the same one after a reload
};

struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};

struct Catalog {
  std::uint64_t version = 0;
  Options options;
  policies::Plan plan;
  std::unordered_map<std::string, Route, NameHash, std::equal_to<>> routes;
  std::vector<Key> keys;
  std::vector<std::shared_ptr<const Target>> targets;  // by BackendId, as long as any id given out; null where
                                                       // this version has none
  std::vector<ProbeTarget> probes;
  std::vector<std::string> tenant_names;  // as the plan's tenants
  std::vector<Network> trusted_proxies;
  std::shared_ptr<const backends::TlsCertificate> certificate;  // shown to callers; null: plain HTTP
};

// Ids stay with names for the life of the process. At most 65,536 of each kind; a reload over that is refused.
class IdBook {
 public:
  policies::EndpointId endpoint(const std::string& host_port);
  policies::BackendId backend(const std::string& pool_and_name, const std::string& host_port);
  policies::PoolId pool(const std::string& name);
  policies::RouteId route(const std::string& name);
  policies::TenantId tenant(const std::string& name);        // up to 1,000,000
  std::size_t backends() const { return backends_.size(); }  // ids given out so far
  std::shared_ptr<std::atomic<std::uint64_t>> body_bytes(const std::string& key);
  // By endpoint id: what counts the connections there. It stays with the endpoint, as its health does.
  const std::vector<std::shared_ptr<backends::ConnectionCap>>& connections() const { return connections_; }

 private:
  std::unordered_map<std::string, std::uint32_t> endpoints_, backends_, pools_, routes_;
  std::unordered_map<std::string, std::uint32_t> tenants_{{"anonymous", 0}};
  std::vector<std::shared_ptr<backends::ConnectionCap>> connections_;
  std::unordered_map<std::string, std::shared_ptr<std::atomic<std::uint64_t>>> body_bytes_;
};

// Gives backends that have no name one by their place in the pool: b1, b2, ...
void name_backends(Options& options);

// What is written, over the defaults.
policies::ClassPlans classes_of(const ClassesOptions& options);

// SHA-256 of a caller's key, as Key::sha256 holds it; and the same from 64 hex digits (std::invalid_argument
// otherwise).
std::array<std::uint8_t, 32> digest_of(std::string_view key);
std::array<std::uint8_t, 32> digest_from_hex(std::string_view hex);

// `options` has passed validation (load.hpp). Throws std::length_error when the IdBook is full.
std::shared_ptr<const Catalog> make_catalog(Options options, IdBook& ids, std::uint64_t version);

}  // namespace headgate::config
