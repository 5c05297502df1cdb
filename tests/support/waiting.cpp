#include "support/waiting.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <thread>

namespace headgate::support {

Event::Event() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Event::~Event() { ::close(descriptor_); }

void Event::set() {
  const std::uint64_t one = 1;
  if (::write(descriptor_, &one, sizeof one) < 0 && errno != EAGAIN)
    throw std::system_error(errno, std::generic_category(), "eventfd write");
}

bool Event::wait(Nanos within) {
  pollfd waited{descriptor_, POLLIN, 0};
  const Time end = after(now(), within);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - now()).count();
    const int ready = ::poll(&waited, 1, left > 0 ? static_cast<int>(left) : 0);
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
  }
}

bool eventually(Nanos within, const std::function<bool()>& holds) {
  const Time end = after(now(), within);
  for (;;) {
    if (holds()) return true;
    if (now() >= end) return holds();
    std::this_thread::sleep_for(10ms);
  }
}

}  // namespace headgate::support
