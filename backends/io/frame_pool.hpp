// Coroutine frames of one thread, reused by size: a request's dozen frames cost no allocation in steady state. A frame
// must be freed on the thread that made it.
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace headgate::backends {

class FramePool {
 public:
  static FramePool& of_this_thread() {
    thread_local FramePool pool;
    return pool;
  }
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool() {
    for (List& list : lists_) {
      while (Free* frame = list.first) {
        list.first = frame->next;
        ::operator delete(frame);
      }
    }
  }

  void* take(std::size_t bytes) {
    const std::size_t size = size_class(bytes);
    if (size >= lists_.size()) return ::operator new(bytes);
    List& list = lists_[size];
    if (list.first == nullptr) return ::operator new((size + 1) * grain);
    Free* frame = list.first;
    list.first = frame->next;
    --list.count;
    return frame;
  }

  void give(void* frame, std::size_t bytes) {
    const std::size_t size = size_class(bytes);
    if (size >= lists_.size() || lists_[size].count >= kept_max) return ::operator delete(frame);
    List& list = lists_[size];
    list.first = ::new (frame) Free{list.first};
    ++list.count;
  }

 private:
  static constexpr std::size_t grain = 64, kept_max = 256;  // per size; more go back to the allocator
  static std::size_t size_class(std::size_t bytes) { return (bytes - 1) / grain; }

  struct Free {
    Free* next;
  };
  struct List {
    Free* first = nullptr;
    std::size_t count = 0;
  };
  std::array<List, 64> lists_{};  // up to 4 KiB
};

}  // namespace headgate::backends
