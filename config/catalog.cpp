#include "config/catalog.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "config/address.hpp"
#include "config/memory_limit.hpp"
#include "config/tls.hpp"

namespace headgate::config {
namespace {

constexpr std::size_t ids_max = 65536, tenants_max = 1'000'000;
constexpr std::size_t shortest_host_hidden = 4;  // shorter ones are parts of ordinary words

std::uint32_t id_of(std::unordered_map<std::string, std::uint32_t>& book, const std::string& name, const char* kind,
                    std::size_t most = ids_max) {
  const auto found = book.find(name);
  if (found != book.end()) return found->second;
  if (book.size() == most) {
    throw std::length_error("over " + std::to_string(most) + " " + kind + " in the life of this process: restart it");
  }
  const auto id = static_cast<std::uint32_t>(book.size());
  book.emplace(name, id);
  return id;
}

policies::HealthOptions health_of(const PoolOptions& pool) {
  policies::HealthOptions health = pool.health;
  health.probe_fall = pool.probe.fall;
  health.probe_rise = pool.probe.rise;
  health.probe_interval = pool.probe.interval;
  return health;
}

std::vector<std::string> never_shown(const HostPort& at, const Secret& key) {
  std::vector<std::string> words{host_port({at.host, at.port, false})};
  if (at.host.size() >= shortest_host_hidden) words.push_back(at.host);
  if (!key.empty()) words.push_back(key.reveal());
  return words;
}

std::shared_ptr<const Target> make_target(const std::string& pool_name, const PoolOptions& pool,
                                          const BackendOptions& backend, const HostPort& at,
                                          const policies::BackendPlan& plan, const backends::TlsContext& trust,
                                          const IdBook& ids) {
  auto target = std::make_shared<Target>();
  target->id = plan.id;
  target->endpoint = plan.endpoint;
  target->pool = pool_name;
  target->name = pool_name + "/" + backend.name;
  target->host = at.host;
  target->port = at.port;
  if (at.tls) {
    const std::string& name = pool.tls.server_name.empty() ? at.host : pool.tls.server_name;
    target->tls = std::make_shared<const backends::TlsPeer>(trust, name);
  }
  target->connections = ids.connections()[index(plan.endpoint)];
  target->connections_max = backend.connections_max.value_or(0);
  target->addresses = std::make_shared<backends::Addresses>();
  if (const auto numeric = backends::Endpoint::numeric(at.host, at.port)) target->addresses->put({*numeric});
  target->authority = authority(at);
  target->model = pool.model;
  if (!pool.api_key.empty()) target->authorization = "Bearer " + pool.api_key.reveal();
  target->forward_client_auth = pool.forward_client_auth;
  target->reports_usage = pool.reports_usage;
  target->price = pool.price;
  target->never_shown = never_shown(at, pool.api_key);
  return target;
}

// An endpoint is planned and probed as the first pool (by name) that has it says; loading refuses pools that differ.
void add_endpoint(Catalog& catalog, policies::EndpointId id, const PoolOptions& pool, const Target& target,
                  std::uint32_t slots) {
  const auto& known = catalog.plan.endpoints;
  if (std::any_of(known.begin(), known.end(), [id](const auto& e) { return e.id == id; })) return;
  catalog.plan.endpoints.push_back({id, slots, pool.limit, health_of(pool)});
  catalog.probes.push_back({id, target.host, target.port, target.authority, target.name, target.tls, pool.probe});
}

void add_pool(Catalog& catalog, const std::string& name, const PoolOptions& pool, IdBook& ids) {
  policies::PoolPlan plan;
  plan.id = ids.pool(name);
  plan.balance = pool.balance;
  plan.queue = pool.queue;
  plan.offer = {pool.price.input, pool.price.output, pool.quality, pool.weight};
  backends::TlsContext trust;  // of all its https backends
  for (const BackendOptions& backend : pool.backends) {
    const auto at = parse_backend_url(backend.url);
    if (!at) throw std::invalid_argument("pool " + name + ": backend url is " + backend.url + ", " + at.problem);
    const std::string where = host_port(*at);
    policies::BackendPlan entry;
    entry.endpoint = ids.endpoint(where);
    entry.id = ids.backend(name + "/" + backend.name, where);
    entry.weight = backend.weight;
    if (at->tls && !trust) trust = load_trust(pool.tls);
    auto target = make_target(name, pool, backend, *at, entry, trust, ids);
    // A request has a connection to itself: what could not have one waits in the queue, or goes elsewhere.
    add_endpoint(catalog, entry.endpoint, pool, *target,
                 std::min(backend.slots, backend.connections_max.value_or(backend.slots)));
    if (catalog.targets.size() <= index(entry.id)) catalog.targets.resize(index(entry.id) + 1);
    catalog.targets[index(entry.id)] = std::move(target);
    plan.backends.push_back(entry);
  }
  catalog.plan.pools.push_back(std::move(plan));
}

void add_route(Catalog& catalog, const std::string& name, const RouteOptions& route, IdBook& ids) {
  policies::RoutePlan plan;
  plan.id = ids.route(name);
  for (const std::string& pool : route.pools) plan.pools.push_back(ids.pool(pool));
  plan.order = route.order;
  plan.budget = route.budget;
  plan.timeouts = route.timeouts;
  plan.retry = route.retry;
  plan.default_max_tokens = route.default_max_tokens;
  catalog.routes.emplace(name, Route{plan.id, name, route.head_hold, route.retry.after_delivery});
  catalog.plan.routes.push_back(std::move(plan));
}

void add_tenant(Catalog& catalog, const std::string& name, const TenantOptions& tenant, IdBook& ids) {
  catalog.plan.tenants.push_back({ids.tenant(name), tenant.weight, tenant.klass, tenant.limits});
  catalog.tenant_names.push_back(name);
}

Key make_key(const KeyOptions& options, IdBook& ids) {
  Key key;
  key.name = options.name;
  key.sha256 = options.key.empty() ? digest_from_hex(options.sha256) : digest_of(options.key.reveal());
  key.every_route = options.routes.empty();
  key.body_bytes = ids.body_bytes(options.name);
  key.tenant = ids.tenant(options.tenant.empty() ? options.name : options.tenant);
  for (const std::string& route : options.routes) key.routes.push_back(ids.route(route));
  std::sort(key.routes.begin(), key.routes.end());
  return key;
}

std::uint8_t hex_value(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  throw std::invalid_argument("a sha256 digest holds a character that is no hex digit");
}

}  // namespace

policies::EndpointId IdBook::endpoint(const std::string& host_port) {
  const std::uint32_t id = id_of(endpoints_, host_port, "endpoints");
  if (id == connections_.size()) connections_.push_back(std::make_shared<backends::ConnectionCap>());
  return policies::EndpointId{id};
}

policies::BackendId IdBook::backend(const std::string& pool_and_name, const std::string& host_port) {
  return policies::BackendId{id_of(backends_, pool_and_name + "@" + host_port, "backends")};
}

policies::PoolId IdBook::pool(const std::string& name) { return policies::PoolId{id_of(pools_, name, "pools")}; }

policies::TenantId IdBook::tenant(const std::string& name) {
  return policies::TenantId{id_of(tenants_, name, "tenants", tenants_max)};
}

policies::RouteId IdBook::route(const std::string& name) { return policies::RouteId{id_of(routes_, name, "routes")}; }

// One for each name ever configured; what nobody refers to any more goes when room is needed.
std::shared_ptr<std::atomic<std::uint64_t>> IdBook::body_bytes(const std::string& key) {
  if (body_bytes_.size() >= ids_max) {
    std::erase_if(body_bytes_, [](const auto& entry) { return entry.second.use_count() == 1; });
  }
  auto& held = body_bytes_[key];
  if (!held) held = std::make_shared<std::atomic<std::uint64_t>>(0);
  return held;
}

void name_backends(Options& options) {
  for (auto& [name, pool] : options.pools) {
    for (std::size_t i = 0; i < pool.backends.size(); ++i) {
      if (pool.backends[i].name.empty()) pool.backends[i].name = "b" + std::to_string(i + 1);
    }
  }
}

policies::ClassPlans classes_of(const ClassesOptions& options) {
  policies::ClassPlans plans = policies::default_classes();
  const std::array of{&options.interactive, &options.standard, &options.batch, &options.sheddable};
  for (std::size_t i = 0; i < plans.size(); ++i) {
    plans[i] = {of[i]->weight.value_or(plans[i].weight), of[i]->floor.value_or(plans[i].floor), of[i]->wait_max,
                of[i]->budget};
  }
  return plans;
}

std::array<std::uint8_t, 32> digest_of(std::string_view key) {
  std::array<std::uint8_t, 32> digest{};
  if (EVP_Digest(key.data(), key.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL refused to compute a SHA-256 digest");
  }
  return digest;
}

std::array<std::uint8_t, 32> digest_from_hex(std::string_view hex) {
  std::array<std::uint8_t, 32> digest{};
  if (hex.size() != 64) throw std::invalid_argument("a sha256 digest is not 64 hex digits long");
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
  }
  return digest;
}

std::shared_ptr<const Catalog> make_catalog(Options options, IdBook& ids, std::uint64_t version) {
  auto catalog = std::make_shared<Catalog>();
  name_backends(options);
  if (!options.limits.bodies) options.limits.bodies = Bytes{memory_limit_bytes() / 4};
  if (!options.limits.bodies_per_key) {
    options.limits.bodies_per_key = Bytes{std::max(options.limits.bodies->count / 2, options.limits.body.count)};
  }
  catalog->version = version;
  catalog->plan.seed = options.seed;
  for (const auto& [name, pool] : options.pools) add_pool(*catalog, name, pool, ids);
  catalog->targets.resize(ids.backends());
  for (const auto& [name, route] : options.routes) add_route(*catalog, name, route, ids);
  for (const auto& [name, tenant] : options.tenants) add_tenant(*catalog, name, tenant, ids);
  for (const KeyOptions& key : options.keys) {
    catalog->keys.push_back(make_key(key, ids));
    if (key.tenant.empty() && !options.tenants.contains(key.name)) add_tenant(*catalog, key.name, {}, ids);
  }
  catalog->plan.classes = classes_of(options.classes);
  for (const std::string& text : options.listen.trusted_proxies)
    catalog->trusted_proxies.push_back(*parse_network(text));
  catalog->certificate = load_certificate(options.listen.tls);
  catalog->options = std::move(options);
  return catalog;
}

}  // namespace headgate::config
