// The mock model servers of `headgate mock`: replicas that share one thread.
//
//   Loop loop;
//   Server server(loop, options, *engine::find_profile(options.profile));
//   if (!server.start(problem)) ...;
//   loop.run();
//   server.stop();   // on the loop's thread; only then may the Server be destroyed
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/engine/profile.hpp"
#include "backends/io/loop.hpp"
#include "backends/mock/options.hpp"
#include "backends/mock/replica.hpp"

namespace headgate::mock {

class Server {
 public:
  Server(backends::Loop& loop, MockOptions options, engine::Profile profile);
  bool start(std::string& problem);
  void stop();
  const std::vector<std::unique_ptr<Replica>>& replicas() const { return replicas_; }

 private:
  MockOptions options_;
  Scratch scratch_;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

// Serves until SIGINT or SIGTERM. One line per replica on standard output once it listens:
//   mock demo listening on 127.0.0.1:9001
// with ", control on 127.0.0.1:9101" behind it where there is a control port. Returns the exit code: 0; 1 when a port
// cannot be had; 2 for an option that makes no sense. Problems go to standard error.
int serve(const MockOptions& options);

}  // namespace headgate::mock
