// The sum of all request bodies held by the process, and its cap. A hold belongs to one request and is given back by
// its destructor.
#pragma once

#include <atomic>
#include <cstdint>

namespace headgate::gateway {

class BodyMemory {
 public:
  explicit BodyMemory(std::uint64_t bytes_max) : max_(bytes_max) {}
  void bytes_max(std::uint64_t bytes) { max_.store(bytes, std::memory_order_relaxed); }
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  std::uint64_t left() const {
    const std::uint64_t max = max_.load(std::memory_order_relaxed), now = held();
    return now < max ? max - now : 0;
  }

  class Hold {
   public:
    explicit Hold(BodyMemory& memory) : memory_(memory) {}
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { release(); }

    // False, and nothing taken, when the cap does not allow it.
    bool grow_to(std::uint64_t bytes) {
      if (bytes <= bytes_) return true;
      const std::uint64_t more = bytes - bytes_;
      const std::uint64_t before = memory_.held_.fetch_add(more, std::memory_order_relaxed);
      if (before + more > memory_.max_.load(std::memory_order_relaxed)) {
        memory_.held_.fetch_sub(more, std::memory_order_relaxed);
        return false;
      }
      bytes_ = bytes;
      return true;
    }
    void release() {
      if (bytes_ != 0) memory_.held_.fetch_sub(bytes_, std::memory_order_relaxed);
      bytes_ = 0;
    }

   private:
    BodyMemory& memory_;
    std::uint64_t bytes_ = 0;
  };

 private:
  std::atomic<std::uint64_t> held_{0}, max_;
};

}  // namespace headgate::gateway
