#include "loadtest/sim/server_use.hpp"

namespace headgate::loadtest {
namespace {

template <class Some, class All>
double part(Some some, All all) {
  return all == 0 ? 0.0 : static_cast<double>(some) / static_cast<double>(all);
}

const config::Target* first_backend_at(const config::Catalog& catalog, std::size_t endpoint) {
  for (const auto& target : catalog.targets) {
    if (target != nullptr && policies::index(target->endpoint) == endpoint) return target.get();
  }
  return nullptr;
}

double cost_usd(const config::PriceOptions& price, const engine::EngineCounts& counts) {
  return (price.input * static_cast<double>(counts.prompt_tokens - counts.cached_tokens) +
          price.cached * static_cast<double>(counts.cached_tokens) +
          price.output * static_cast<double>(counts.output_tokens)) /
         1e6;
}

}  // namespace

std::vector<ServerUse> server_use(const config::Catalog& catalog, const std::vector<engine::Profile>& profiles,
                                  const std::vector<engine::EngineCounts>& all_counts, Nanos run) {
  std::vector<ServerUse> servers;
  for (std::size_t endpoint = 0; endpoint < profiles.size(); ++endpoint) {
    const config::Target* const target = first_backend_at(catalog, endpoint);
    if (target == nullptr) continue;  // left by a reload
    const engine::EngineCounts& counts = all_counts[endpoint];
    servers.push_back({.name = target->name,
                       .busy = part(counts.busy.count(), run.count()),
                       .batch = part(counts.in_batches, counts.steps),
                       .kv_held = part(counts.held_blocks, counts.steps * profiles[endpoint].blocks),
                       .cost_usd = cost_usd(target->price, counts),
                       .prompt_tokens = counts.prompt_tokens,
                       .cached_tokens = counts.cached_tokens,
                       .output_tokens = counts.output_tokens,
                       .preemptions = counts.preemptions});
  }
  return servers;
}

}  // namespace headgate::loadtest
