#include "config/validate.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "config/address.hpp"
#include "config/catalog.hpp"
#include "config/describe_pools.hpp"
#include "config/tls.hpp"
#include "config/units.hpp"
#include "policies/base/nearest.hpp"

namespace headgate::config {
namespace {

std::string shown_sum(double sum) {
  std::string text = std::to_string(sum);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

std::string same_as(const Place& first) { return first.path + " (line " + std::to_string(first.line) + ")"; }

template <class T>
std::vector<std::string> names_of(const std::map<std::string, T>& entries) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const auto& [name, entry] : entries) names.push_back(name);
  return names;
}

// Field by field, so that a field added later is compared too.
template <Described T>
bool equal(const T& a, const T& b) {
  bool same = true;
  each_field<T>([&](const auto& field) { same = same && a.*field.member == b.*field.member; });
  return same;
}

class Validator {
 public:
  explicit Validator(Problems& problems) : problems_(problems) {}

  void listeners(const Options& options, const Place& root) {
    const Place listen = root.member("listen");
    const Place data = listen.member("data"), admin = listen.member("admin");
    if (listen.faulty()) return;
    if (!data.faulty()) data_listener(options.listen, listen);
    if (!admin.faulty()) admin_listener(options, root, admin);
    if (!data.faulty() && !admin.faulty() && options.listen.data == options.listen.admin &&
        parse_listen(options.listen.data)->port != 0) {
      add(admin, "is " + in_quotes(options.listen.admin) + ", the same as $.listen.data; must have a port of its own");
    }
    const Place keys = root.member("keys");
    const bool nobody = options.keys.empty() && !options.listen.allow_anonymous;
    if (nobody && !keys.faulty() && !listen.member("allow_anonymous").faulty()) {
      add(keys, std::string(keys.written() ? "is empty" : "is missing") +
                    ": nobody could call; add keys, or set $.listen.allow_anonymous to true");
    }
  }

  void listen_tls(const ListenTlsOptions& tls, const Place& at) {
    if (at.faulty() || at.member("certificate").faulty() || at.member("key").faulty()) return;
    try {
      load_certificate(tls);
    } catch (const TlsFileProblem& wrong) {
      add(at.member(wrong.field), wrong.what());
    }
  }

  void limits(const LimitOptions& limits, const Place& at) {
    const Place bodies = at.member("bodies"), body = at.member("body");
    const Place per_key = at.member("bodies_per_key");
    if (body.faulty()) return;
    const auto room_for_one = [&](const std::optional<Bytes>& sum, const Place& place) {
      if (!sum || place.faulty() || *sum >= limits.body) return;
      add(place, "is " + in_quotes(format_size(*sum)) + ", must be at least $.limits.body, which is " +
                     in_quotes(format_size(limits.body)));
    };
    room_for_one(limits.bodies, bodies);
    room_for_one(limits.bodies_per_key, per_key);
  }

  void keys(const Options& options, const Place& at, const Place& routes_at) {
    std::map<std::string, Place> names;
    std::map<std::array<std::uint8_t, 32>, Place> digests;
    const auto routes = names_of(options.routes), tenants = names_of(options.tenants);
    for (std::size_t i = 0; i < options.keys.size(); ++i) {
      const KeyOptions& key = options.keys[i];
      const Place place = at.item(i);
      if (place.faulty()) continue;
      unique(place.member("name"), key.name, names, "must be unique");
      key_material(key, place, digests);
      references(place.member("routes"), key.routes, routes_at, routes, "route");
      const Place tenant = place.member("tenant");
      if (tenant.written() && !tenant.faulty() && !options.tenants.contains(key.tenant)) {
        add(tenant,
            "is " + in_quotes(key.tenant) + ", must name a tenant of this file" + suggestion(key.tenant, tenants));
      }
    }
  }

  void classes(const policies::ClassPlans& classes, const Place& at) {
    double floors = 0;
    for (const policies::ClassOptions& one : classes) floors += one.floor;
    if (floors <= 1 || at.faulty()) return;
    add(at, "has floors of " + shown_sum(floors) + " together, must have at most 1");
  }

  void pool(const PoolOptions& pool, const Place& at) {
    std::map<std::string, Place> names, urls;
    const Place backends = at.member("backends");
    pool_tls(pool.tls, at.member("tls"));
    for (std::size_t i = 0; i < pool.backends.size(); ++i) {
      const Place place = backends.item(i);
      if (place.faulty()) continue;
      unique(place.member("name"), pool.backends[i].name, names, "must be unique in its pool");
      const Place url = place.member("url");
      const auto where = parse_backend_url(pool.backends[i].url);
      if (where && !url.faulty()) unique(url, host_port(*where), urls, "must be unique in its pool");
      if (where && !url.faulty()) endpoint(pool, pool.backends[i], host_port(*where), at, place);
    }
    if (pool.forward_client_auth && !pool.api_key.empty()) {
      add(at.member("forward_client_auth"), "is true, must be false when the pool has an \"api_key\" of its own");
    }
    at_most(at.member("probe"), "timeout", pool.probe.timeout, "interval", pool.probe.interval);
    const Place health = at.member("health");
    at_most(health, "eject", pool.health.eject, "eject_max", pool.health.eject_max);
    at_most(health, "cooldown_first", pool.health.cooldown_first, "cooldown_unadvised_max",
            pool.health.cooldown_unadvised_max);
  }

  void route(const RouteOptions& route, const Place& at, const Place& pools_at, const std::vector<std::string>& pools) {
    const Place list = at.member("pools");
    references(list, route.pools, pools_at, pools, "pool");
    std::map<std::string, Place> seen;
    for (std::size_t i = 0; i < route.pools.size(); ++i) {
      unique(list.item(i), route.pools[i], seen, "must stand in a route only once");
    }
    const Place retry = at.member("retry");
    at_most(retry, "backoff", route.retry.backoff, "backoff_max", route.retry.backoff_max);
    if (route.retry.budget_initial > route.retry.budget_max) {
      const Place initial = retry.member("budget_initial"), most = retry.member("budget_max");
      if (!initial.faulty() && !most.faulty()) {
        const auto number = [](double value) { return nlohmann::json(value).dump(); };
        if (initial.written()) {
          add(initial, "is " + number(route.retry.budget_initial) + ", must be at most budget_max, which is " +
                           number(route.retry.budget_max));
        } else {
          add(most, "is " + number(route.retry.budget_max) + ", must be at least budget_initial, which is " +
                        number(route.retry.budget_initial));
        }
      }
    }
  }

 private:
  struct Endpoint {
    Place pool, backend;
    const PoolOptions* options;
    const BackendOptions* named;
  };

  void add(const Place& at, std::string message) { problems_.add(at.line, at.path, std::move(message)); }

  void data_listener(const ListenOptions& options, const Place& listen) {
    const auto at = parse_listen(options.data);
    if (!at || is_loopback(at->host) || !options.allow_anonymous || options.insecure) return;
    if (listen.member("insecure").faulty()) return;
    add(listen.member("allow_anonymous"),
        "is true while $.listen.data is " + in_quotes(options.data) +
            ", which others can reach: must be false, or $.listen.insecure true as well");
  }

  void admin_listener(const Options& options, const Place& root, const Place& admin) {
    const auto at = parse_listen(options.listen.admin);
    const Place token = root.member("admin").member("token");
    if (!at || is_loopback(at->host) || !options.admin.token.empty() || token.faulty()) return;
    add(admin, "is " + in_quotes(options.listen.admin) +
                   ", which others can reach: must be a loopback address, or $.admin.token be set");
  }

  void pool_tls(const PoolTlsOptions& tls, const Place& at) {
    if (!at.written() || at.faulty() || at.member("ca").faulty()) return;
    try {
      load_trust(tls);
    } catch (const TlsFileProblem& wrong) {
      add(at.member(wrong.field), wrong.what());
    }
  }

  // An empty name was left out, and gets one that no other has.
  void unique(const Place& at, const std::string& name, std::map<std::string, Place>& seen, const char* rule) {
    if (name.empty() || at.faulty()) return;
    const auto [first, fresh] = seen.emplace(name, at);
    if (!fresh) add(at, "is " + in_quotes(name) + " as " + same_as(first->second) + " is; " + rule);
  }

  void references(const Place& list, const std::vector<std::string>& names, const Place& section,
                  const std::vector<std::string>& known, const char* kind) {
    if (!section.written() || section.faulty()) return;  // said once, there
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Place at = list.item(i);
      if (at.faulty() || std::find(known.begin(), known.end(), names[i]) != known.end()) continue;
      add(at, "is " + in_quotes(names[i]) + ", must name a " + kind + " of this file" + suggestion(names[i], known));
    }
  }

  void key_material(const KeyOptions& key, const Place& at, std::map<std::array<std::uint8_t, 32>, Place>& digests) {
    const Place digest = at.member("sha256"), plain = at.member("key");
    if (digest.faulty() || plain.faulty()) return;
    if (digest.written() == plain.written()) {
      add(at, plain.written() ? "has both \"sha256\" and \"key\", must have one of them"
                              : "has neither \"sha256\" nor \"key\", must have one of them");
      return;
    }
    const auto hash = plain.written() ? digest_of(key.key.reveal()) : digest_from_hex(key.sha256);
    const auto [first, fresh] = digests.emplace(hash, at);
    if (!fresh) add(plain.written() ? plain : digest, "is the same key as " + same_as(first->second) + " has");
  }

  static std::string shown(const std::optional<std::uint32_t>& count) {
    return count ? std::to_string(*count) : "absent";
  }

  // One endpoint has one limit and one health, whichever pools it stands in.
  void endpoint(const PoolOptions& pool, const BackendOptions& backend, const std::string& where, const Place& pool_at,
                const Place& at) {
    const auto [known, fresh] = endpoints_.emplace(where, Endpoint{pool_at, at, &pool, &backend});
    const Endpoint& first = known->second;
    if (fresh || first.options == &pool) return;
    const Place slots = at.member("slots"), first_slots = first.backend.member("slots");
    if (backend.slots != first.named->slots && !slots.faulty() && !first_slots.faulty()) {
      add(slots, "is " + std::to_string(backend.slots) + ", must be " + std::to_string(first.named->slots) + " as " +
                     same_as(first_slots) + " is: both share the limit of " + where);
    }
    const Place most = at.member("connections_max"), first_most = first.backend.member("connections_max");
    if (backend.connections_max != first.named->connections_max && !most.faulty() && !first_most.faulty()) {
      add(most, "is " + shown(backend.connections_max) + ", must be " + shown(first.named->connections_max) + " as " +
                    same_as(first_most) + " is: both share the connections to " + where);
    }
    agree(pool.probe, first.options->probe, pool_at.member("probe"), first.pool.member("probe"), where);
    agree(pool.tls, first.options->tls, pool_at.member("tls"), first.pool.member("tls"), where);
    agree(pool.limit, first.options->limit, pool_at.member("limit"), first.pool.member("limit"), where);
    agree(pool.health, first.options->health, pool_at.member("health"), first.pool.member("health"), where);
  }

  template <Described T>
  void agree(const T& mine, const T& theirs, const Place& at, const Place& first, const std::string& where) {
    if (equal(mine, theirs)) return;
    bool faulty = at.faulty() || first.faulty();
    each_field<T>([&](const auto& field) {
      faulty = faulty || at.member(field.name).faulty() || first.member(field.name).faulty();
    });
    if (!faulty) add(at, "must say the same as " + same_as(first) + ": both pools have " + where);
  }

  void at_most(const Place& at, const char* low_name, Nanos low, const char* high_name, Nanos high) {
    const Place low_at = at.member(low_name), high_at = at.member(high_name);
    if (low <= high || low_at.faulty() || high_at.faulty() || at.faulty()) return;
    if (low_at.written()) {
      add(low_at, "is " + in_quotes(format_duration(low)) + ", must be at most " + high_name + ", which is " +
                      in_quotes(format_duration(high)));
    } else {
      add(high_at, "is " + in_quotes(format_duration(high)) + ", must be at least " + low_name + ", which is " +
                       in_quotes(format_duration(low)));
    }
  }

  Problems& problems_;
  std::map<std::string, Endpoint> endpoints_;
};

}  // namespace

void validate(const Options& options, const Place& root, Problems& problems) {
  Validator validator(problems);
  validator.listeners(options, root);
  if (const Place listen = root.member("listen"); !listen.faulty())
    validator.listen_tls(options.listen.tls, listen.member("tls"));
  validator.limits(options.limits, root.member("limits"));
  const Place pools = root.member("pools"), routes = root.member("routes");
  validator.keys(options, root.member("keys"), routes);
  validator.classes(classes_of(options.classes), root.member("classes"));
  for (const auto& [name, pool] : options.pools) {
    if (const Place at = pools.member(name); !at.faulty()) validator.pool(pool, at);
  }
  const auto pool_names = names_of(options.pools);
  for (const auto& [name, route] : options.routes) {
    if (const Place at = routes.member(name); !at.faulty()) validator.route(route, at, pools, pool_names);
  }
}

}  // namespace headgate::config
