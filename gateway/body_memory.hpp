// The sum of all request bodies held by the process, and its cap; of these, each key's, with a cap of their own. A hold
// belongs to one request and is given back by its destructor.
#pragma once

#include <atomic>
#include <cstdint>

namespace headgate::gateway {

using BodyBytes = std::atomic<std::uint64_t>;

class BodyMemory {
 public:
  explicit BodyMemory(std::uint64_t bytes_max) : max_(bytes_max) {}
  void bytes_max(std::uint64_t bytes) { max_.store(bytes, std::memory_order_relaxed); }
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  std::uint64_t left() const {
    const std::uint64_t max = max_.load(std::memory_order_relaxed), now = held();
    return now < max ? max - now : 0;
  }
  BodyBytes anonymous{0};  // of callers without a key

  enum class Grown : std::uint8_t { yes, none_left, key_has_its_part };

  class Hold {
   public:
    explicit Hold(BodyMemory& memory) : memory_(memory) {}
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { release(); }

    // Of a hold that is empty: whose it will be. `of_key` outlives the hold.
    void belongs_to(BodyBytes& of_key, std::uint64_t most) {
      of_key_ = &of_key;
      key_max_ = most;
    }
    std::uint64_t key_left() const {
      const std::uint64_t now = of_key_->load(std::memory_order_relaxed);
      return now < key_max_ ? key_max_ - now : 0;
    }

    // Nothing is taken when a cap does not allow it.
    Grown grow_to(std::uint64_t bytes) {
      if (bytes <= bytes_) return Grown::yes;
      const std::uint64_t more = bytes - bytes_;
      if (!take(*of_key_, more, key_max_)) return Grown::key_has_its_part;
      if (!take(memory_.held_, more, memory_.max_.load(std::memory_order_relaxed))) {
        of_key_->fetch_sub(more, std::memory_order_relaxed);
        return Grown::none_left;
      }
      bytes_ = bytes;
      return Grown::yes;
    }
    void release() {
      if (bytes_ == 0) return;
      memory_.held_.fetch_sub(bytes_, std::memory_order_relaxed);
      of_key_->fetch_sub(bytes_, std::memory_order_relaxed);
      bytes_ = 0;
    }

   private:
    static bool take(BodyBytes& held, std::uint64_t more, std::uint64_t most) {
      if (held.fetch_add(more, std::memory_order_relaxed) + more <= most) return true;
      held.fetch_sub(more, std::memory_order_relaxed);
      return false;
    }

    BodyMemory& memory_;
    BodyBytes* of_key_ = nullptr;
    std::uint64_t bytes_ = 0, key_max_ = 0;
  };

 private:
  BodyBytes held_{0}, max_;
};

}  // namespace headgate::gateway
