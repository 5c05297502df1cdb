// When the gateway's health probes reach the servers of a simulation. Only those that a fault has touched are probed:
// before it every answer would be good. As the prober does it, 0.8 to 1.2 of the interval apart; but while no request
// is on its way and the answers have long been the same, those until shortly before the next arrival are left out, so
// that a quiet year costs nothing.
#pragma once

#include <vector>

#include "config/catalog.hpp"

namespace headgate::loadtest {

class Probing {
 public:
  Probing(const config::Catalog& catalog, std::size_t endpoints);

  void replan(const config::Catalog& catalog);  // whom no one asks after any more is asked no more

  // A fault has changed the server: when it is probed next; never: a probe is on its way already, or it has none.
  Time changed(std::uint32_t endpoint, Time now);
  // Of the probe that was set last; one of another serial is stale.
  std::uint32_t serial(std::uint32_t endpoint) const { return probes_[endpoint].serial; }
  // It was answered: when the next one is due. `quiet_until`: no request before it; `now` or earlier: there are some.
  Time answered(std::uint32_t endpoint, Time now, bool ok, Time quiet_until);

 private:
  struct Probe {
    const config::ProbeOptions* options = nullptr;  // null: not probed
    std::uint32_t serial = 0, alike = 0;            // alike: answers in a row that were the same
    bool ok = true;
    Time next = never;
  };
  Nanos pause(std::uint32_t endpoint);

  std::uint64_t seed_, drawn_ = 0;
  std::vector<Probe> probes_;  // by endpoint
};

}  // namespace headgate::loadtest
