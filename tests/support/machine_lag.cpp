#include "support/machine_lag.hpp"

#include <algorithm>

namespace headgate::support {

MachineLag::MachineLag() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

void MachineLag::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Time wanted = now() + 5ms;
    std::this_thread::sleep_until(wanted);
    worst_ = std::max<std::int64_t>(worst_, (now() - wanted).count());
  }
}

}  // namespace headgate::support
