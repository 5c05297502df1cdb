#include "loadtest/sim/probing.hpp"

#include <algorithm>

#include "policies/base/random.hpp"

namespace headgate::loadtest {
namespace {
constexpr std::uint32_t settled_after = 10;  // answers alike, on top of those that its verdict needs
}  // namespace

Probing::Probing(const config::Catalog& catalog, std::size_t endpoints)
    : seed_(catalog.options.seed), probes_(endpoints) {
  replan(catalog);
}

void Probing::replan(const config::Catalog& catalog) {
  for (Probe& probe : probes_) probe.options = nullptr;
  for (const config::ProbeTarget& target : catalog.probes) {
    const std::size_t endpoint = policies::index(target.endpoint);
    if (endpoint < probes_.size()) probes_[endpoint].options = &target.probe;
  }
}

Nanos Probing::pause(std::uint32_t endpoint) {
  const double jitter = 0.8 + 0.4 * unit(draw(seed_, endpoint, ++drawn_));
  const Nanos interval = probes_[endpoint].options->interval;
  return Nanos(static_cast<std::int64_t>(static_cast<double>(interval.count()) * jitter));
}

Time Probing::changed(std::uint32_t endpoint, Time now) {
  Probe& probe = probes_[endpoint];
  if (probe.options == nullptr) return never;
  probe.alike = 0;
  const bool asleep = probe.next > after(now, probe.options->interval * 6 / 5);
  if (!asleep) return never;
  ++probe.serial;
  return probe.next = after(now, pause(endpoint));
}

Time Probing::answered(std::uint32_t endpoint, Time now, bool ok, Time quiet_until) {
  Probe& probe = probes_[endpoint];
  if (probe.options == nullptr) return probe.next = never;
  probe.alike = ok == probe.ok ? std::min(probe.alike + 1, settled_after * 1000) : 1;
  probe.ok = ok;
  const bool settled = probe.alike >= settled_after + std::max(probe.options->fall, probe.options->rise);
  const Nanos usual = pause(endpoint);
  probe.next = after(now, usual);
  if (settled && quiet_until > after(probe.next, usual)) probe.next = quiet_until - usual;
  ++probe.serial;
  return probe.next;
}

}  // namespace headgate::loadtest
