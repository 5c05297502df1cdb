// One coroutine waits; anything that concerns it wakes it. Sources set their own flags first, the coroutine looks at
// them when it runs: like a condition variable of one thread, without a timer and without allocation.
//
//   while (!link.readable()) co_await waker.wait();
#pragma once

#include <coroutine>
#include <utility>

namespace headgate::backends {

class Waker {
 public:
  Waker() = default;
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  // Completes at once if wake() was called since the last wait.
  auto wait() {
    struct Wait {
      Waker& waker;
      bool await_ready() const { return std::exchange(waker.signalled_, false); }
      void await_suspend(std::coroutine_handle<> waiting) const { waker.waiting_ = waiting; }
      void await_resume() const {}
    };
    return Wait{*this};
  }

  // Runs the waiting coroutine on this stack, or is remembered for its next wait. Call it last: the coroutine may end
  // and destroy what called.
  void wake() {
    if (!waiting_) {
      signalled_ = true;
      return;
    }
    std::exchange(waiting_, nullptr).resume();
  }

 private:
  std::coroutine_handle<> waiting_;
  bool signalled_ = false;
};

}  // namespace headgate::backends
