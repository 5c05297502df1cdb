#include "gateway/name_book.hpp"

namespace headgate::gateway {
namespace {

void keep(std::vector<std::string>& names, std::size_t place, const std::string& name) {
  if (names.size() <= place) names.resize(place + 1);
  names[place] = name;
}

}  // namespace

void NameBook::learn(const config::Catalog& catalog) {
  for (const auto& probe : catalog.probes) keep(endpoints_, policies::index(probe.endpoint), probe.name);
  for (const auto& [name, route] : catalog.routes) keep(routes_, policies::index(route.id), name);
  for (std::size_t i = 0; i < catalog.tenant_names.size(); ++i)
    keep(tenants_, policies::index(catalog.plan.tenants[i].id), catalog.tenant_names[i]);
  // Pools stand in the plan by id alone; their names are those of the backends in them.
  for (const auto& pool : catalog.plan.pools) {
    for (const auto& backend : pool.backends) {
      const std::size_t place = policies::index(backend.id);
      if (place < catalog.targets.size() && catalog.targets[place]) {
        keep(pools_, policies::index(pool.id), catalog.targets[place]->pool);
        break;
      }
    }
  }
}

}  // namespace headgate::gateway
