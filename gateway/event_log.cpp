#include "gateway/event_log.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace headgate::gateway {

namespace {

constexpr auto look_every = std::chrono::milliseconds(50);
constexpr std::size_t spare_max = 16;
constexpr std::size_t behind = config::plain_event_bytes_max;  // kept free in a chunk

int open_anew(const std::string& file) {
  std::error_code none;
  if (std::filesystem::is_regular_file(file, none) && std::filesystem::file_size(file, none) > 0)
    std::filesystem::rename(file, file + ".1");  // the last one of a process that crashed is worth most
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "event log \"" + file + "\"");
  return fd;
}

}  // namespace

EventLog::EventLog(const std::string& file, std::uint64_t bytes_max, std::string_view first_line)
    : file_(file), bytes_max_(bytes_max), fd_(open_anew(file)) {
  for (int n = 0; n < 4; ++n) spare_.emplace_back(chunk_bytes);  // not made under the host's lock
  start_chunk(first_line.size());
  std::copy(first_line.begin(), first_line.end(), chunk_.begin());
  used_ = first_line.size();
  thread_ = std::thread([this] { run(); });
}

EventLog::~EventLog() {
  if (!full() && lost_ == 0) close(false);
  hand_over();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
  thread_.join();
  ::close(fd_);
}

void EventLog::close(bool full) {
  config::Closed closed{full};
  used_ += config::write_event(closed, chunk_.data() + used_);
}

void EventLog::start_chunk(std::size_t bytes) {
  if (chunk_.size() < bytes + 2 * behind) chunk_.resize(std::max(chunk_bytes, bytes + 2 * behind));
  used_ = 0;
  usable_ = std::min<std::uint64_t>(chunk_.size() - behind, bytes_max_ - std::min(handed_over_, bytes_max_));
}

char* EventLog::room_in_next(std::size_t bytes) {
  if (full()) return nullptr;
  if (handed_over_ + used_ + bytes > bytes_max_) {
    close(true);
    full_.store(true, std::memory_order_relaxed);
    spdlog::warn("event log \"{}\" has reached its size and ends here", file_);
    return nullptr;
  }
  if (!hand_over()) {
    ++lost_;
    if (lost_total_.fetch_add(1, std::memory_order_relaxed) == 0)
      spdlog::warn("event log \"{}\": the writer is behind, records are lost", file_);
    return nullptr;
  }
  start_chunk(bytes);
  if (lost_ > 0) {
    config::Gap gap{std::exchange(lost_, 0)};
    used_ += config::write_event(gap, chunk_.data());
  }
  return chunk_.data() + used_;
}

void EventLog::flush() {
  if (used_ > 0 && hand_over()) start_chunk(0);
}

bool EventLog::hand_over() {
  const std::lock_guard lock(mutex_);
  if (backlog_ + used_ > backlog_max && !stopping_) return false;
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
  return true;
}

void EventLog::run() {
  sigset_t every;
  sigfillset(&every);  // signals are the main thread's
  pthread_sigmask(SIG_BLOCK, &every, nullptr);
  std::vector<Chunk> chunks;
  std::unique_lock lock(mutex_);
  for (;;) {
    stopped_.wait_for(lock, look_every, [this] { return stopping_; });
    chunks.swap(waiting_);
    const bool last = stopping_;
    for (Chunk& chunk : chunks) {
      lock.unlock();
      write(chunk);
      lock.lock();
      backlog_ -= chunk.size();
      chunk.resize(chunk.capacity());
      if (spare_.size() < spare_max) spare_.push_back(std::move(chunk));
    }
    chunks.clear();
    if (last) return;
  }
}

void EventLog::write(const Chunk& chunk) {
  std::string_view rest(chunk.data(), chunk.size());
  while (!rest.empty() && !failed_) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failed_ = true;
      spdlog::error("event log \"{}\" ends here: {}", file_, std::generic_category().message(errno));
      break;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace headgate::gateway
