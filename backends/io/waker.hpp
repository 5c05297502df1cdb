// One coroutine waits; anything that concerns it wakes it. Sources set their own flags first, the coroutine looks at
// them when it runs: like a condition variable of one thread, without a timer and without allocation.
//
//   while (!link.readable()) co_await waker.wait();
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace headgate::backends {

class Waker {
 public:
  Waker() = default;
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  ~Waker() {
    if (run_ != nullptr) run_(storage_, false);
  }

  // Completes at once if wake() was called since the last wait.
  auto wait() {
    return boost::asio::async_initiate<const boost::asio::deferred_t&, void()>(
        [](auto handler, Waker* self) { self->store(std::move(handler)); }, boost::asio::deferred, this);
  }

  // Runs the waiting coroutine on this stack, or is remembered for its next wait. Call it last: the coroutine may end
  // and destroy what called.
  void wake() {
    if (run_ == nullptr) {
      signalled_ = true;
      return;
    }
    std::exchange(run_, nullptr)(storage_, true);
  }

 private:
  template <class Handler>
  void store(Handler handler) {
    if (std::exchange(signalled_, false)) return std::move(handler)();
    static_assert(sizeof(Handler) <= sizeof(storage_) && alignof(Handler) <= alignof(std::max_align_t));
    ::new (static_cast<void*>(storage_)) Handler(std::move(handler));
    run_ = [](void* storage, bool invoke) {
      auto* stored = std::launder(static_cast<Handler*>(storage));
      Handler taken(std::move(*stored));
      stored->~Handler();
      if (invoke) std::move(taken)();
    };
  }

  alignas(std::max_align_t) std::byte storage_[64];
  void (*run_)(void*, bool) = nullptr;
  bool signalled_ = false;
};

}  // namespace headgate::backends
