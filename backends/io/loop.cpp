#include "backends/io/loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace headgate::backends {

namespace {

constexpr std::size_t batch = 256;  // events taken at once
constexpr Nanos longest_wait = std::chrono::seconds(60);

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
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = nullptr}};
  checked(epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_, &event), "epoll_ctl");
}

Loop::~Loop() {
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

void Loop::ring_due() {
  const Time now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < timers_.size(); ++i) {  // a ring may make or end timers
    Timer& timer = *timers_[i];
    if (timer.at_ > now) continue;
    timer.at_ = never;
    timer.ring_();
  }
}

std::size_t Loop::wait_for_events(Nanos at_most) {
  if (precise_) {
    const timespec timeout{.tv_sec = at_most.count() / 1'000'000'000, .tv_nsec = at_most.count() % 1'000'000'000};
    const int ready = epoll_pwait2(epoll_, events_.data(), static_cast<int>(batch), &timeout, nullptr);
    precise_ = ready >= 0 || errno != ENOSYS;  // before Linux 5.11: in whole milliseconds
    if (precise_) return ready > 0 ? static_cast<std::size_t>(ready) : 0;
  }
  const auto timeout = std::chrono::ceil<std::chrono::milliseconds>(at_most);
  const int ready = epoll_wait(epoll_, events_.data(), static_cast<int>(batch), static_cast<int>(timeout.count()));
  return ready > 0 ? static_cast<std::size_t>(ready) : 0;
}

// By the time a connection's event comes what it touches has left the caches: it is fetched while others are served.
void Loop::prefetch_next() const {
  if (next_event_ + 1 < event_count_) __builtin_prefetch(events_[next_event_ + 1].data.ptr);
  if (next_event_ == event_count_) return;
  const epoll_event& next = events_[next_event_];
  if (next.events != 0 && next.data.ptr != nullptr) static_cast<const Watched*>(next.data.ptr)->prefetch();
}

void Loop::turn(Time until) {
  const Time ring_at = std::min(until, next_ring());
  Nanos wait = longest_wait;
  if (ring_at != never) wait = std::clamp(ring_at - std::chrono::steady_clock::now(), Nanos(0), longest_wait);
  event_count_ = wait_for_events(wait);
  for (next_event_ = 0; next_event_ < event_count_;) {
    const epoll_event& event = events_[next_event_++];
    prefetch_next();
    if (event.data.ptr == nullptr) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t read = ::read(wakeup_, &count, sizeof count);
      run_posted();
    } else if (event.events != 0) {
      static_cast<Watched*>(event.data.ptr)->on_ready(event.events);
    }
  }
  event_count_ = next_event_ = 0;
  if (ring_at != never) ring_due();
}

void Loop::run() {
  stopped_ = false;
  while (!stopped_) turn(never);
}

void Loop::run_once(Nanos at_most) { turn(std::chrono::steady_clock::now() + at_most); }

}  // namespace headgate::backends
