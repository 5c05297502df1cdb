// A mutex for sections of about a microsecond, where sleeping and being woken costs more than waiting. Who finds it
// taken looks again for a few microseconds; if its holder was interrupted, he lets others run; the kernel's queue comes
// last.
#pragma once

#include <mutex>
#include <thread>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace headgate::gateway {

class SpinningMutex {
 public:
  void lock() {
    for (int looks = 0; looks < looks_max + yields_max; ++looks) {
      if (mutex_.try_lock()) return;
      if (looks >= looks_max) {
        std::this_thread::yield();
        continue;
      }
#if defined(__SSE2__)
      _mm_pause();
#endif
    }
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr int looks_max = 100, yields_max = 20;
  std::mutex mutex_;
};

}  // namespace headgate::gateway
