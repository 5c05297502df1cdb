// Names of ids for people: what an endpoint, pool or route id is called. It outlives reloads, so that a backend that
// was removed and still works is shown under its name. Ids are never given out anew, so a name is never wrong; there
// are at most 65,536 of each kind (config::IdBook).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/catalog.hpp"
#include "policies/ids.hpp"

namespace headgate::gateway {

class NameBook {
 public:
  void learn(const config::Catalog& catalog);  // at start and after each reload

  // Empty when never heard of. An endpoint is called as config::ProbeTarget::name says: by its first backend.
  std::string_view endpoint(policies::EndpointId id) const { return at(endpoints_, policies::index(id)); }
  std::string_view pool(policies::PoolId id) const { return at(pools_, policies::index(id)); }
  std::string_view tenant(policies::TenantId id) const { return at(tenants_, policies::index(id)); }
  std::string_view route(policies::RouteId id) const { return at(routes_, policies::index(id)); }

 private:
  static std::string_view at(const std::vector<std::string>& names, std::size_t i) {
    return i < names.size() ? std::string_view(names[i]) : std::string_view();
  }
  std::vector<std::string> endpoints_, pools_, routes_;
  std::vector<std::string> tenants_{"anonymous"};
};

}  // namespace headgate::gateway
