#include "gateway/event_log.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <system_error>
#include <utility>

namespace headgate::gateway {

namespace {

constexpr auto look_every = std::chrono::milliseconds(50);
constexpr std::size_t spare_max = 16;
constexpr std::size_t behind = config::plain_event_bytes_max;  // kept free in a chunk

[[noreturn]] void refuse(const std::string& file, int error, const char* what) {
  throw std::system_error(error, std::generic_category(), "event log \"" + file + "\"" + what);
}

// Ours alone, or an error. A pipe would hold the writer, and with it the end of the process, for ever.
int open_own(const std::string& file) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
  if (fd < 0) refuse(file, errno, "");
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !(S_ISREG(info.st_mode) || S_ISCHR(info.st_mode))) {
    ::close(fd);
    refuse(file, EINVAL, " is no file");
  }
  if (S_ISREG(info.st_mode) && ::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd);
    refuse(file, EBUSY, " is written by another process");
  }
  if (!S_ISREG(info.st_mode) || info.st_size == 0) return fd;
  // What a process that crashed has left is worth most.
  const bool moved = std::rename(file.c_str(), (file + ".1").c_str()) == 0;
  const int error = errno;
  ::close(fd);
  if (!moved) refuse(file, error, ": what it holds cannot be moved to the same name with .1");
  return open_own(file);
}

}  // namespace

EventLog::EventLog(const std::string& file, std::uint64_t bytes_max, std::string_view first_line)
    : EventLog(open_own(file), file, bytes_max, first_line) {}

EventLog::EventLog(int fd, std::string name, std::uint64_t bytes_max, std::string_view first_line)
    : name_(std::move(name)), bytes_max_(bytes_max), fd_(fd) {
  for (int n = 0; n < 4; ++n) spare_.emplace_back(chunk_bytes);  // not made under the host's lock
  start_chunk(first_line.size());
  std::copy(first_line.begin(), first_line.end(), chunk_.begin());
  used_ = first_line.size();
  thread_ = std::thread([this] { run(); });
}

EventLog::~EventLog() {
  if (!ended()) close(false);
  {
    const std::lock_guard lock(mutex_);
    hand_over_locked();
    stopping_ = true;
  }
  stopped_.notify_one();
  thread_.join();
  ::close(fd_);
}

void EventLog::mark_gap() {
  if (lost_ == 0) return;
  config::Gap gap{std::exchange(lost_, 0)};
  used_ += config::write_event(gap, chunk_.data() + used_);
}

void EventLog::close(bool full) {
  mark_gap();
  config::Closed closed{full};
  used_ += config::write_event(closed, chunk_.data() + used_);
  usable_ = 0;
}

void EventLog::start_chunk(std::size_t bytes) {
  if (chunk_.size() < bytes + 2 * behind) chunk_.resize(std::max(chunk_bytes, bytes + 2 * behind));
  used_ = 0;
  const std::uint64_t left = ended() ? 0 : bytes_max_ - std::min(handed_over_, bytes_max_);
  usable_ = std::min<std::uint64_t>(chunk_.size() - behind, left);
}

char* EventLog::room_in_next(std::size_t bytes) {
  if (ended()) return nullptr;
  if (handed_over_ + used_ + bytes > bytes_max_) {
    close(true);
    full_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  if (!hand_over()) {
    ++lost_;
    lost_total_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  start_chunk(bytes);
  mark_gap();
  return chunk_.data() + used_;
}

void EventLog::flush() {
  if (used_ > 0 && hand_over()) start_chunk(0);
}

bool EventLog::hand_over() {
  const std::lock_guard lock(mutex_);
  if (backlog_ + used_ > backlog_max) return false;
  hand_over_locked();
  return true;
}

void EventLog::hand_over_locked() {
  handed_over_ += used_;
  backlog_ += used_;
  chunk_.resize(used_);
  waiting_.push_back(std::move(chunk_));
  chunk_.clear();
  if (!spare_.empty()) {
    chunk_ = std::move(spare_.back());
    spare_.pop_back();
  }
  used_ = usable_ = 0;
}

void EventLog::run() {
  sigset_t every;
  sigfillset(&every);  // signals are the main thread's
  pthread_sigmask(SIG_BLOCK, &every, nullptr);
  std::vector<Chunk> chunks;
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      stopped_.wait_for(lock, look_every, [this] { return stopping_; });
      chunks.swap(waiting_);
      last = stopping_;
    }
    for (Chunk& chunk : chunks) {
      write(chunk);
      const std::size_t bytes = chunk.size();
      chunk.resize(chunk.capacity());
      const std::lock_guard lock(mutex_);
      backlog_ -= bytes;
      if (spare_.size() < spare_max) spare_.push_back(std::move(chunk));
    }
    chunks.clear();
    say_what_happened();
  }
}

// Here, as nothing is said under the host's lock.
void EventLog::say_what_happened() {
  if (full_.load(std::memory_order_relaxed) && !std::exchange(said_full_, true))
    spdlog::warn("event log \"{}\" has reached its size and ends here", name_);
  if (lost() > 0 && !std::exchange(said_lost_, true))
    spdlog::warn("event log \"{}\": the writer was behind, records are lost", name_);
}

void EventLog::write(const Chunk& chunk) {
  std::string_view rest(chunk.data(), chunk.size());
  while (!rest.empty() && !failed_.load(std::memory_order_relaxed)) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      spdlog::error("event log \"{}\" ends here: {}", name_, std::generic_category().message(errno));
      failed_.store(true, std::memory_order_relaxed);
      break;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace headgate::gateway
