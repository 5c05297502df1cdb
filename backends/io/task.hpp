// A coroutine of one thread that others may wait for. It runs at once, on the caller's stack, to its first wait; one
// that never waits costs no suspension. Frames come from a free list of the thread (frame_pool.hpp).
//
//   Task<bool> send(...);                       const bool sent = co_await send(...);
//   return Task<bool>::over(true);              by a plain function: nothing to wait for, no frame
//   spawn(serve(connection), [] { ... });       nobody waits: the function is called when it has ended
// What a task throws comes out of its co_await, or out of Loop::run() when it was spawned.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "backends/io/frame_pool.hpp"

namespace headgate::backends {

template <class T = void>
class Task;

namespace task {

struct PromiseBase {
  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      const std::coroutine_handle<> next = ended.promise().awaiting;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() const noexcept {}
  };

  std::suspend_never initial_suspend() const noexcept { return {}; }
  Final final_suspend() const noexcept { return {}; }
  void unhandled_exception() { thrown = std::current_exception(); }
  void rethrow() const {
    if (thrown) std::rethrow_exception(thrown);
  }

  static void* operator new(std::size_t bytes) { return FramePool::of_this_thread().take(bytes); }
  static void operator delete(void* frame, std::size_t bytes) { FramePool::of_this_thread().give(frame, bytes); }

  std::coroutine_handle<> awaiting;  // who is resumed at the end; null: nobody waits yet
  std::exception_ptr thrown;
};

template <class T>
struct Promise : PromiseBase {
  Task<T> get_return_object();
  void return_value(T result) { value.emplace(std::move(result)); }
  std::optional<T> value;
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() const {}
};

}  // namespace task

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = task::Promise<T>;
  using Result = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  explicit Task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  static Task over(Result result = {}) { return Task(std::move(result)); }
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)), result_(std::move(other.result_)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (frame_) frame_.destroy();
  }

  bool await_ready() const { return !frame_ || frame_.done(); }
  void await_suspend(std::coroutine_handle<> awaiting) { frame_.promise().awaiting = awaiting; }
  T await_resume() {
    if (frame_) frame_.promise().rethrow();
    if constexpr (!std::is_void_v<T>) return std::move(frame_ ? *frame_.promise().value : result_);
  }

 private:
  explicit Task(Result result) : result_(std::move(result)) {}

  std::coroutine_handle<promise_type> frame_;  // none: it was over before it began
  Result result_{};
};

namespace task {

template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

struct Detached {
  struct promise_type {
    Detached get_return_object() const { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const {}
    void unhandled_exception() const { throw; }
    static void* operator new(std::size_t bytes) { return FramePool::of_this_thread().take(bytes); }
    static void operator delete(void* frame, std::size_t bytes) { FramePool::of_this_thread().give(frame, bytes); }
  };
};

}  // namespace task

template <class Ended>
task::Detached spawn(Task<> work, Ended ended) {
  co_await work;
  ended();
}

}  // namespace headgate::backends
