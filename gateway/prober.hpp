// Health probes that cost no tokens: GET the probe path of each endpoint, on a connection of its own, each interval
// x U[0.8, 1.2] (seeded) after the last one ended. A whole answer with status 200..299 inside the time limit is a hit;
// everything else is a miss. At most 64 KiB of an answer are read; a longer body counts by its status.
//
//   Prober prober(io, seed, [&](policies::EndpointId id, bool ok) { .. });
//   prober.set_targets(catalog->probes);    // again after a reload: unchanged targets keep their cadence
//   prober.stop();                          // no report after it
//
// set_targets, stop and the callback belong to the io_context's thread (or before it runs).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "config/catalog.hpp"

namespace headgate::gateway {

class Prober {
 public:
  using Report = std::function<void(policies::EndpointId, bool ok)>;

  Prober(boost::asio::io_context& io, std::uint64_t seed, Report report);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  void set_targets(const std::vector<config::ProbeTarget>& targets);
  void stop();

 private:
  struct Probe;
  struct Shared;
  boost::asio::io_context& io_;
  std::shared_ptr<Shared> shared_;              // outlives the Prober in coroutines that still end
  std::vector<std::shared_ptr<Probe>> probes_;  // shared with their coroutines
};

}  // namespace headgate::gateway
