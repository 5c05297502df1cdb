#include "backends/upstream_pool.hpp"

#include <algorithm>

namespace headgate::backends {

namespace {
constexpr Nanos sweep_every = std::chrono::seconds(1);
bool usable(const Link& link) { return link.connected() && !link.write_failed(); }
}  // namespace

UpstreamPool::UpstreamPool(Wheel& wheel, UpstreamPoolOptions options)
    : options_(options), sweeper_(wheel, [this] { sweep(std::chrono::steady_clock::now()); }) {}

LinkPtr UpstreamPool::take(std::uint32_t endpoint) {
  if (endpoint >= by_endpoint_.size()) return nullptr;
  std::vector<Idle>& idle = by_endpoint_[endpoint];
  while (!idle.empty()) {
    LinkPtr link = std::move(idle.back().link);
    idle.pop_back();
    if (usable(*link) && link->in().empty()) return link;
  }
  return nullptr;
}

void UpstreamPool::give(std::uint32_t endpoint, LinkPtr link, Time now) {
  if (!usable(*link) || !link->in().empty() || options_.idle_max == 0) return;
  link->owner(nullptr);
  link->arm();
  if (endpoint >= by_endpoint_.size()) by_endpoint_.resize(endpoint + 1);
  std::vector<Idle>& idle = by_endpoint_[endpoint];
  if (idle.size() >= options_.idle_max) idle.erase(idle.begin());
  idle.push_back({std::move(link), now});
  if (sweeper_.at() == never) sweeper_.set(now + sweep_every);
}

void UpstreamPool::sweep(Time now) {
  bool any = false;
  for (std::vector<Idle>& idle : by_endpoint_) {
    std::erase_if(idle, [&](const Idle& one) {
      return !usable(*one.link) || !one.link->in().empty() || now - one.since >= options_.idle;
    });
    any = any || !idle.empty();
  }
  if (any) sweeper_.set(now + sweep_every);
}

void UpstreamPool::close_all() {
  by_endpoint_.clear();
  sweeper_.cancel();
}

std::size_t UpstreamPool::idle() const {
  std::size_t n = 0;
  for (const std::vector<Idle>& idle : by_endpoint_) n += idle.size();
  return n;
}

}  // namespace headgate::backends
