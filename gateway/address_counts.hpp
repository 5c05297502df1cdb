// Connections by the address they come from, over all workers. One entry for each address that has one open, so the
// table is bounded by listen.connections_max.
#pragma once

#include <mutex>
#include <unordered_map>

#include "backends/io/ip_address.hpp"

namespace headgate::gateway {

class AddressCounts {
 public:
  // Counts one more, unless there are `most` already.
  bool enter(const backends::IpAddress& from, std::uint32_t most) {
    const std::lock_guard lock(mutex_);
    std::uint32_t& count = counts_[from.subscriber()];
    if (count >= most) return false;
    ++count;
    return true;
  }
  void leave(const backends::IpAddress& from) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(from.subscriber());
    if (--found->second == 0) counts_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint32_t> counts_;
};

}  // namespace headgate::gateway
