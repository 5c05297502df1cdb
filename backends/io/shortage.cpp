#include "backends/io/shortage.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace headgate::backends {

namespace {

rlim_t descriptors_max() {
  static const rlim_t most = [] {
    rlimit limit{};
    const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
    constexpr rlim_t all = std::numeric_limits<int>::max();
    return known ? std::min(limit.rlim_cur, all) : all;
  }();
  return most;
}

int all_but(rlim_t most, rlim_t part) {
  return static_cast<int>(descriptors_max() - std::min(most, descriptors_max() / part));
}

}  // namespace

int descriptors_for_callers() { return all_but(64, 8); }
int descriptors_for_backends() { return all_but(16, 16); }

}  // namespace headgate::backends
