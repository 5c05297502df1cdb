// Callers that send one plain request after another at a steady pace, each on a connection of its own that is kept, and
// write down what came back. For what must not disturb traffic: reloads, restarts of others.
//
//   SteadyCallers callers(gateway.port(), 5, 100ms);   // five callers, 50 requests a second in all
//   ...
//   callers.stop();
//   EXPECT_THAT(callers.faults(), IsEmpty());
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/raw_client.hpp"

namespace headgate::support {

class SteadyCallers {
 public:
  SteadyCallers(std::uint16_t port, int callers, Nanos every, std::string bytes = chat_request(chat_body(false)));
  ~SteadyCallers() { stop(); }
  SteadyCallers(const SteadyCallers&) = delete;
  SteadyCallers& operator=(const SteadyCallers&) = delete;

  void stop();  // waits for the requests under way
  std::size_t answered() const { return answered_; }
  std::vector<std::string> faults() const;  // every answer that was not a whole 200

 private:
  void run(std::uint16_t port, Nanos first, Nanos every, const std::string& bytes);

  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> answered_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> faults_;
  std::vector<std::jthread> threads_;
};

}  // namespace headgate::support
