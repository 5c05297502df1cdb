// The mock model servers of `headgate mock`: replicas that share one thread.
//
//   Loop loop;
//   Server server(loop, options, profiles, faults);
//   if (!server.start(problem)) ...;
//   loop.run();
//   server.stop();   // on the loop's thread; only then may the Server be destroyed
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/engine/profile.hpp"
#include "backends/io/loop.hpp"
#include "backends/mock/fault_plan.hpp"
#include "backends/mock/options.hpp"
#include "backends/mock/replica.hpp"

namespace headgate::mock {

class Server {
 public:
  // profiles: of the replicas in turn, at least one.
  Server(backends::Loop& loop, MockOptions options, std::span<const engine::Profile> profiles,
         std::vector<PlannedControl> faults = {});
  bool start(std::string& problem);  // the times of the faults count from here
  void stop();
  const std::vector<std::unique_ptr<Replica>>& replicas() const { return replicas_; }

 private:
  void obey_plan();

  MockOptions options_;
  Scratch scratch_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<PlannedControl> faults_;
  std::optional<FaultPlan> plan_;
  backends::Loop::Timer plan_timer_;
  Time started_{};
};

// Serves until SIGINT or SIGTERM. One line per replica on standard output once it listens:
//   mock demo listening on 127.0.0.1:9001
// with ", control on 127.0.0.1:9101" behind it where there is a control port; and one per planned fault when it comes:
//   10.0 s  replica 0: {"fault":"hang"}
// Returns the exit code: 0; 1 when a port
// cannot be had; 2 for an option that makes no sense. Problems go to standard error.
int serve(const MockOptions& options);

}  // namespace headgate::mock
