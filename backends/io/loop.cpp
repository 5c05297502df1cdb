#include "backends/io/loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace headgate::backends {

namespace {

constexpr std::size_t batch = 256;  // events taken at once

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::system_category(), what);
  return result;
}

}  // namespace

Loop::Timer::Timer(Loop& loop, std::function<void()> ring) : loop_(loop), ring_(std::move(ring)) {
  loop_.timers_.push_back(this);
}

Loop::Timer::~Timer() { std::erase(loop_.timers_, this); }

Loop::Loop() : epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")), events_(batch) {
  wakeup_ = checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd");
  clock_ = checked(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create");
  for (const auto& [fd, mark] : {std::pair{wakeup_, &wakeup_}, std::pair{clock_, &clock_}}) {
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = mark}};
    checked(epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  }
}

Loop::~Loop() {
  ::close(clock_);
  ::close(wakeup_);
  ::close(epoll_);
}

bool Loop::watch(int fd, Watched& who) {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.ptr = &who}};
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Loop::unwatch(int fd, const Watched& who) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  forget(who);
}

void Loop::forget(const Watched& who) {
  for (std::size_t i = next_event_; i < event_count_; ++i) {
    if (events_[i].data.ptr == &who) events_[i].events = 0;
  }
}

void Loop::post(std::function<void()> work) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = posted_.empty();
    posted_.push_back(std::move(work));
  }
  if (!first) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wakeup_, &one, sizeof one);
}

void Loop::stop() {
  post([this] { stopped_ = true; });
}

void Loop::run_posted() {
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(posted_);
  }
  for (std::function<void()>& work : taken_) work();
  taken_.clear();
}

Time Loop::next_ring() const {
  Time first = never;
  for (const Timer* timer : timers_) first = std::min(first, timer->at_);
  return first;
}

// In the order in which they were due, so that what shares a thread keeps its order from beat to beat.
void Loop::ring_due() {
  const Time now = std::chrono::steady_clock::now();
  for (std::size_t left = timers_.size(); left > 0; --left) {  // a ring may make, end or set timers
    const auto first = std::ranges::min_element(timers_, {}, &Timer::at);
    if (first == timers_.end() || (*first)->at_ > now) return;
    Timer& timer = **first;
    timer.at_ = never;
    timer.ring_();
  }
}

// The system's clock is set only for a time that is sooner than the one it is set to: a turn that waits costs no timer.
// A time that was moved or taken back leaves it to ring in vain, once.
void Loop::set_clock() {
  const Time next = next_ring();
  if (next >= clock_set_to_) return;
  clock_set_to_ = next;
  const Nanos at = std::max(next.time_since_epoch(), Nanos(1));  // zero would be "never"
  const itimerspec once{.it_interval = {},
                        .it_value = {.tv_sec = at.count() / 1'000'000'000, .tv_nsec = at.count() % 1'000'000'000}};
  timerfd_settime(clock_, TFD_TIMER_ABSTIME, &once, nullptr);
}

// By the time a connection's event comes what it touches has left the caches: it is fetched while others are served.
void Loop::prefetch_next() const {
  if (next_event_ + 1 < event_count_) __builtin_prefetch(events_[next_event_ + 1].data.ptr);
  if (next_event_ == event_count_) return;
  const epoll_event& next = events_[next_event_];
  if (next.events != 0 && next.data.ptr != &wakeup_ && next.data.ptr != &clock_)
    static_cast<const Watched*>(next.data.ptr)->prefetch();
}

void Loop::turn(int at_most_ms) {
  set_clock();
  const int ready = epoll_wait(epoll_, events_.data(), static_cast<int>(batch), at_most_ms);
  event_count_ = ready > 0 ? static_cast<std::size_t>(ready) : 0;
  bool rings = false;
  for (next_event_ = 0; next_event_ < event_count_;) {
    const epoll_event& event = events_[next_event_++];
    prefetch_next();
    if (event.data.ptr == &wakeup_) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t read = ::read(wakeup_, &count, sizeof count);
      run_posted();
    } else if (event.data.ptr == &clock_) {
      rings = true;  // after what came before it
    } else if (event.events != 0) {
      static_cast<Watched*>(event.data.ptr)->on_ready(event.events);
    }
  }
  event_count_ = next_event_ = 0;
  if (!rings) return;
  clock_set_to_ = never;
  ring_due();
}

void Loop::run() {
  stopped_ = false;
  while (!stopped_) turn(-1);
}

void Loop::run_once(std::chrono::milliseconds at_most) { turn(static_cast<int>(at_most.count())); }

}  // namespace headgate::backends
