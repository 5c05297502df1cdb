#include "support/steady_callers.hpp"

#include <system_error>
#include <utility>

namespace headgate::support {

SteadyCallers::SteadyCallers(std::uint16_t port, int callers, Nanos every, std::string bytes) {
  for (int n = 0; n < callers; ++n)
    threads_.emplace_back([this, port, first = every * n / callers, every, bytes] { run(port, first, every, bytes); });
}

void SteadyCallers::stop() {
  stopping_ = true;
  threads_.clear();
}

std::vector<std::string> SteadyCallers::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

void SteadyCallers::run(std::uint16_t port, Nanos first, Nanos every, const std::string& bytes) {
  std::string fault;
  try {
    RawClient client(port);
    for (Time next = now() + first; !stopping_; next = std::max(next + every, now())) {
      std::this_thread::sleep_until(next);  // the pace is the input
      const Reply reply = client.ask(bytes, 30s);
      ++answered_;
      if (reply.status == 200 && reply.complete) continue;
      fault = reply.raw.empty() ? "no answer" : reply.raw;
      break;
    }
  } catch (const std::system_error& refused) {
    fault = refused.what();
  }
  if (fault.empty()) return;
  const std::lock_guard lock(mutex_);
  faults_.push_back(std::move(fault));
}

}  // namespace headgate::support
