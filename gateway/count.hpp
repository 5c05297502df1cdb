// One writer, any number of readers: loaded and stored relaxed, which are plain moves. sub() makes it a gauge.
#pragma once

#include <atomic>
#include <cstdint>

namespace headgate::gateway {

class Count {
 public:
  void add(std::uint64_t n = 1) { value_.store(get() + n, std::memory_order_relaxed); }
  void sub(std::uint64_t n = 1) { value_.store(get() - n, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace headgate::gateway
