// One thread's event loop: sockets on an edge-triggered epoll set that each joins once, deadlines, and work posted by
// other threads. An idle turn costs one system call; a request on kept connections none but its own reads and writes.
//
//   Loop loop;
//   loop.post([&] { ... });   // any thread
//   loop.run();               // until stop()
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "policies/base/time.hpp"

struct epoll_event;

namespace headgate::backends {

class Loop {
 public:
  // Something with a descriptor. Edges: told once when there is news, and not again before all of it was taken.
  class Watched {
   public:
    virtual void on_ready(std::uint32_t epoll_events) = 0;
    virtual void prefetch() const {}  // what on_ready() is about to touch

   protected:
    ~Watched() = default;
  };

  // Calls back at its time, to the precision of the system. Few per loop; many deadlines share one through a Wheel.
  class Timer {
   public:
    Timer(Loop& loop, std::function<void()> ring);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    void set(Time at) { at_ = at; }  // never: not at all
    Time at() const { return at_; }

   private:
    friend class Loop;
    Loop& loop_;
    std::function<void()> ring_;
    Time at_ = never;
  };

  Loop();  // throws std::system_error without descriptors
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // The loop's thread.
  bool watch(int fd, Watched& who);  // reads, writes and the peer's end, edge-triggered; false: the system said no
  void unwatch(int fd, const Watched& who);  // the descriptor stays open
  void forget(const Watched& who);  // with closing its descriptor: what this turn still had to tell it is dropped
  void run();                       // returns after stop()
  void run_once(std::chrono::milliseconds at_most);  // one turn

  // Any thread.
  void post(std::function<void()> work);
  void stop();

 private:
  void turn(int at_most_ms);  // negative: no limit
  void prefetch_next() const;
  void set_clock();
  void run_posted();
  void ring_due();
  Time next_ring() const;

  int epoll_ = -1, wakeup_ = -1, clock_ = -1;
  Time clock_set_to_ = never;
  std::vector<epoll_event> events_;
  std::size_t next_event_ = 0, event_count_ = 0;  // of the turn under way
  std::vector<Timer*> timers_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;  // guards posted_
  std::vector<std::function<void()>> posted_;
  std::vector<std::function<void()>> taken_;
};

}  // namespace headgate::backends
