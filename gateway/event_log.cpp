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
#include <filesystem>
#include <system_error>
#include <utility>

namespace headgate::gateway {

namespace {

constexpr auto look_every = std::chrono::milliseconds(50);
constexpr std::size_t spare_max = 16;
constexpr std::size_t behind = config::plain_event_bytes_max;  // kept free in a chunk

constexpr std::uint64_t no_limit = ~std::uint64_t{0};

[[noreturn]] void refuse(const std::string& file, int error, const char* what) {
  throw std::system_error(error, std::generic_category(), "event log \"" + file + "\"" + what);
}

bool is_file(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

bool is_same(int fd, const std::string& file) {
  struct stat ours {
  }, there{};
  return ::fstat(fd, &ours) == 0 && ::stat(file.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
         ours.st_ino == there.st_ino;
}

// A new file under that name, ours alone from the first moment on; what stood there is FILE.1. The caller holds the
// lock of what stood there.
int begin_new(const std::string& file, bool keep_old) {
  const std::string made = file + ".new", old = file + ".1";
  const int fd = ::open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
  if (fd < 0) refuse(file, errno, ": no file can be made beside it");
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  struct stat info {};
  const bool folder = ::lstat(old.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (folder) errno = EISDIR;
  if (locked && !folder && (!keep_old || ::rename(file.c_str(), old.c_str()) == 0 || errno == ENOENT) &&
      ::rename(made.c_str(), file.c_str()) == 0) {
    return fd;
  }
  const int error = errno;
  ::close(fd);
  if (locked) ::unlink(made.c_str());
  refuse(file, error, ": what it holds cannot be moved to the same name with .1");
}

// Ours alone, or an error. A pipe would hold the writer, and with it the end of the process, for ever.
int open_own(const std::string& file) {
  constexpr int tries_max = 10;
  for (int tries = 0; tries < tries_max; ++tries) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
    if (fd < 0) refuse(file, errno, "");
    struct stat info {};
    if (::fstat(fd, &info) == 0 && S_ISCHR(info.st_mode)) return fd;
    if (!S_ISREG(info.st_mode)) {
      ::close(fd);
      refuse(file, EINVAL, " is no file");
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      ::close(fd);
      refuse(file, EBUSY, " is written by another process");
    }
    if (!is_same(fd, file)) {  // moved away before it was locked
      ::close(fd);
      continue;
    }
    try {
      // What a process that crashed has left is worth most.
      const int fresh = begin_new(file, info.st_size > 0);
      ::close(fd);
      return fresh;
    } catch (...) {
      ::close(fd);
      throw;
    }
  }
  refuse(file, EBUSY, " is being moved");
}

// Where a link leads: a file that moves stays beside itself.
std::string where_it_leads(const std::string& file) {
  std::error_code none;
  const auto path = std::filesystem::weakly_canonical(file, none);
  return none ? file : path.string();
}

}  // namespace

EventLog::EventLog(const std::string& file, std::uint64_t bytes_max, std::string first_line)
    : EventLog(open_own(where_it_leads(file)), where_it_leads(file), bytes_max, std::move(first_line)) {}

EventLog::EventLog(int fd, std::string name, std::string first_line)
    : EventLog(fd, std::move(name), no_limit, std::move(first_line)) {}

EventLog::EventLog(int fd, std::string name, std::uint64_t bytes_max, std::string first_line)
    : name_(std::move(name)),
      bytes_max_(is_file(fd) ? bytes_max : no_limit),
      first_line_(std::move(first_line)),
      fd_(fd),
      limit_(bytes_max_) {
  for (int n = 0; n < 4; ++n) spare_.push_back({std::vector<char>(chunk_bytes)});  // not made under the host's lock
  start_chunk(first_line_.size());
  used_ = first_line_.copy(chunk_.bytes.data(), first_line_.size());
  thread_ = std::thread([this] { run(); });
}

EventLog::~EventLog() {
  mark_gap();
  close(false);
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
  used_ += config::write_event(gap, chunk_.bytes.data() + used_);
}

void EventLog::close(bool continued) {
  config::Closed closed{continued};
  used_ += config::write_event(closed, chunk_.bytes.data() + used_);
}

void EventLog::start_chunk(std::size_t bytes) {
  if (chunk_.bytes.size() < bytes + 2 * behind) chunk_.bytes.resize(std::max(chunk_bytes, bytes + 2 * behind));
  used_ = 0;
  usable_ = chunk_.bytes.size() - behind;
}

char* EventLog::room_in_next(std::size_t bytes) {
  if (failed()) return nullptr;
  if (!hand_over()) {
    ++lost_;
    lost_total_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  start_chunk(bytes);
  mark_gap();
  return chunk_.bytes.data() + used_;
}

void EventLog::begin_file(std::string image) {
  const std::uint64_t digest = config::image_digest(image);
  config::Continued continued{std::move(image), digest};
  const std::size_t bytes = first_line_.size() + config::write_event(continued, nullptr);
  {
    const std::lock_guard lock(mutex_);
    if (backlog_ > 0 && backlog_ + used_ + bytes > backlog_max) {
      limit_ += chunk_bytes;
      return;
    }
    close(true);
    hand_over_locked();
  }
  start_chunk(bytes);
  chunk_.begins_file = true;
  used_ = first_line_.copy(chunk_.bytes.data(), first_line_.size());
  used_ += config::write_event(continued, chunk_.bytes.data() + used_);
  file_bytes_ = 0;
  limit_ = std::max(bytes_max_, std::uint64_t{bytes} * 4);  // more calls than state
}

void EventLog::flush() {
  if (used_ > 0 && hand_over()) start_chunk(0);
}

bool EventLog::hand_over() {
  const std::lock_guard lock(mutex_);
  if (backlog_ > 0 && backlog_ + used_ > backlog_max) return false;
  hand_over_locked();
  return true;
}

void EventLog::hand_over_locked() {
  file_bytes_ += used_;
  backlog_ += used_;
  chunk_.bytes.resize(used_);
  waiting_.push_back(std::exchange(chunk_, {}));
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
      if (chunk.begins_file) next_file();
      write(chunk);
      const std::size_t bytes = chunk.bytes.size();
      const bool usual = chunk.bytes.capacity() <= 2 * chunk_bytes;
      chunk.bytes.resize(chunk.bytes.capacity());
      chunk.begins_file = false;
      const std::lock_guard lock(mutex_);
      backlog_ -= bytes;
      if (usual && spare_.size() < spare_max) spare_.push_back(std::move(chunk));
    }
    chunks.clear();
    // Here, as nothing is said under the host's lock.
    if (lost() > 0 && !std::exchange(said_lost_, true))
      spdlog::warn("event log \"{}\": the writer was behind, records are lost", name_);
  }
}

void EventLog::next_file() {
  if (failed()) return;
  try {
    const int next = begin_new(name_, is_same(fd_, name_));
    ::close(std::exchange(fd_, next));
  } catch (const std::system_error& wrong) {
    spdlog::error("{}; it ends here", wrong.what());
    failed_.store(true, std::memory_order_relaxed);
  }
}

void EventLog::write(const Chunk& chunk) {
  std::string_view rest(chunk.bytes.data(), chunk.bytes.size());
  while (!rest.empty() && !failed()) {
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
