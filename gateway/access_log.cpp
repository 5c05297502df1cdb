#include "gateway/access_log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <concepts>
#include <cstring>
#include <system_error>
#include <utility>

#include "gateway/json_text.hpp"

namespace headgate::gateway {
namespace {

constexpr auto time_to_stop = std::chrono::seconds(2);
constexpr std::size_t spare_max = 16;
constexpr std::size_t wake_at = AccessLog::backlog_max / 4;  // bytes waiting: no longer until the next look
constexpr int look_every_ms = 100;
constexpr int off_fd = -2;

// A file descriptor to own, or off_fd, or -1 with errno set.
int open_destination(const std::string& destination) {
  if (destination == "off") return off_fd;
  if (destination == "stdout") return ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (destination == "stderr") return ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  return ::open(destination.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

// A file or a device such as /dev/null, but for terminals: a write takes all and does not wait for a reader.
bool has_no_reader(int fd) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && (S_ISREG(about.st_mode) || (S_ISCHR(about.st_mode) && ::isatty(fd) == 0));
}

// Writes one line into room made beforehand: appending piece by piece to a string costs three times as much.
class Line {
 public:
  explicit Line(char* at) : at_(at) {}
  char* end() const { return at_; }

  template <std::size_t N>
  void raw(const char (&text)[N]) {
    std::memcpy(at_, text, N - 1);
    at_ += N - 1;
  }
  // Between quotes that the keys around it bring: a word of ours or of the wire rules, which needs no escape.
  void word(std::string_view value) { at_ = std::copy(value.begin(), value.end(), at_); }
  void text(std::string_view value) {
    if (stands_as_it_is(value)) return word(value);
    std::string escaped;
    append_escaped(escaped, value);
    word(escaped);
  }
  template <std::integral T>
  void number(T value) {
    at_ = std::to_chars(at_, at_ + digits_max, value).ptr;
  }
  void ms(Nanos time) {
    const std::int64_t us = std::max<std::int64_t>(0, time.count() / 1000);
    number(us / 1000);
    *at_++ = '.';
    padded(static_cast<int>(us % 1000), 3);
  }
  // 2026-01-02T03:04:05.678
  void time(std::chrono::system_clock::time_point at) {
    using namespace std::chrono;
    const auto day = floor<days>(at);
    const year_month_day date(day);
    const auto ms = static_cast<int>(duration_cast<milliseconds>(at - day).count());
    number(static_cast<int>(date.year()));
    separated('-', static_cast<int>(static_cast<unsigned>(date.month())));
    separated('-', static_cast<int>(static_cast<unsigned>(date.day())));
    separated('T', ms / 3'600'000);
    separated(':', ms / 60'000 % 60);
    separated(':', ms / 1000 % 60);
    separated('.', ms % 1000, 3);
  }

 private:
  static constexpr std::ptrdiff_t digits_max = 20;

  void padded(int value, int width) {
    for (int place = width; place-- > 0; value /= 10) at_[place] = static_cast<char>('0' + value % 10);
    at_ += width;
  }
  void separated(char before, int value, int width = 2) {
    *at_++ = before;
    padded(value, width);
  }

  char* at_;
};

// A query may carry a key, and a path is the caller's to make long.
std::string_view shown_path(std::string_view target) {
  constexpr std::size_t path_max = 256;
  return target.substr(0, std::min(target.find('?'), path_max));
}

}  // namespace

void append_access_line(std::string& out, const AccessEntry& entry) {
  constexpr std::size_t fixed = 768;  // keys, quotes and 14 numbers of at most 24 bytes
  const std::string_view path = shown_path(entry.path);
  const std::size_t text = entry.request_id.size() + entry.client.size() + entry.key_name.size() + entry.route.size() +
                           path.size() + entry.backend.size() + entry.cause.size() + entry.last_end.size() +
                           entry.method.size();
  std::array<char, 4096> room;  // enough for almost all
  std::string more_room;
  if (fixed + quoted_growth * text > room.size()) more_room.resize(fixed + quoted_growth * text);
  char* const begin = more_room.empty() ? room.data() : more_room.data();
  Line line(begin);
  line.raw("{\"time\":\"");
  line.time(entry.at);
  line.raw("Z\",\"id\":\"");
  line.word(entry.request_id);
  line.raw("\",\"client\":\"");
  line.text(entry.client);
  line.raw("\",\"key\":\"");
  line.text(entry.key_name);
  line.raw("\",\"route\":\"");
  line.text(entry.route);
  line.raw("\",\"status\":");
  line.number(entry.status);
  line.raw(",\"in\":");
  line.number(entry.input_tokens);
  line.raw(",\"out\":");
  line.number(entry.output_tokens);
  line.raw(",\"estimated\":");
  entry.estimated ? line.raw("true") : line.raw("false");
  line.raw(",\"cached\":");
  line.number(entry.cached_tokens);
  line.raw(",\"queue_ms\":");
  line.ms(entry.queued);
  line.raw(",\"ttft_ms\":");
  entry.ttft ? line.ms(*entry.ttft) : line.raw("null");
  line.raw(",\"total_ms\":");
  line.ms(entry.total);
  line.raw(",\"backend\":\"");
  line.text(entry.backend);
  line.raw("\",\"attempts\":");
  line.number(entry.attempts);
  line.raw(",\"outcome\":\"");
  line.word(name_of(entry.outcome));
  line.raw("\",\"cause\":\"");
  line.word(entry.cause);
  if (!entry.last_end.empty()) {
    line.raw("\",\"last_end\":\"");
    line.word(entry.last_end);
  }
  line.raw("\",\"method\":\"");
  line.word(entry.method);
  line.raw("\",\"path\":\"");
  line.text(path);
  line.raw("\",\"stream\":");
  entry.stream ? line.raw("true") : line.raw("false");
  line.raw(",\"bytes\":");
  line.number(entry.bytes);
  line.raw("}\n");
  out.append(begin, line.end());
}

AccessLog::AccessLog(std::string destination) {
  fd_ = open_destination(destination);
  if (fd_ == -1) throw std::system_error(errno, std::generic_category(), "access log \"" + destination + "\"");
  off_ = fd_ == off_fd;
  wakeup_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wakeup_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  thread_ = std::thread([this] { run(); });
}

AccessLog::~AccessLog() {
  {
    const std::lock_guard lock(mutex_);
    give_up_at_ = std::chrono::steady_clock::now() + time_to_stop;
    stopping_ = true;
  }
  wake();
  thread_.join();
  ::close(wakeup_);
  if (fd_ >= 0) ::close(fd_);
  if (next_fd_ >= 0) ::close(next_fd_);
}

std::string AccessLog::reopen(std::string destination) {
  const int fd = open_destination(destination);
  if (fd == -1) return "access log \"" + destination + "\": " + std::generic_category().message(errno);
  {
    const std::lock_guard lock(mutex_);
    if (next_fd_ >= 0) ::close(next_fd_);
    next_fd_ = fd;
    off_ = fd == off_fd;
  }
  wake();
  return {};
}

void AccessLog::take(std::string& text, std::uint32_t lines) {
  if (text.empty()) return;
  const std::lock_guard lock(mutex_);
  if (backlog_ + text.size() > backlog_max) {
    dropped_.fetch_add(lines, std::memory_order_relaxed);
    text.clear();
    return;
  }
  if (backlog_ <= wake_at && backlog_ + text.size() > wake_at) wake();
  backlog_ += text.size();
  waiting_.push_back({std::move(text), lines});
  text.clear();
  if (!spare_.empty()) {
    text = std::move(spare_.back());
    spare_.pop_back();
  }
}

void AccessLog::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wakeup_, &one, sizeof one);
}

void AccessLog::run() {
  sigset_t every;
  sigfillset(&every);  // signals are the main thread's, and a closed pipe is an error code here
  pthread_sigmask(SIG_BLOCK, &every, nullptr);

  std::vector<Batch> batches;
  for (;;) {
    // By the clock, not by a condition variable: workers that hand lines over make no system call for it.
    pollfd woken{wakeup_, POLLIN, 0};
    if (::poll(&woken, 1, stopping_ ? 0 : look_every_ms) > 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t taken = ::read(wakeup_, &count, sizeof count);
    }
    std::unique_lock lock(mutex_);
    batches.swap(waiting_);
    const int next = std::exchange(next_fd_, -1);
    const bool last = stopping_ && batches.empty();
    lock.unlock();
    if (next != -1) {
      if (fd_ >= 0) ::close(fd_);
      fd_ = next;
    }
    for (Batch& batch : batches) {
      write(batch);
      lock.lock();
      backlog_ -= batch.text.size();
      batch.text.clear();
      if (spare_.size() < spare_max) spare_.push_back(std::move(batch.text));
      lock.unlock();
    }
    batches.clear();
    if (last) return;
  }
}

void AccessLog::write(const Batch& batch) {
  if (fd_ == off_fd) return;
  // A full pipe would hold this thread for ever: wait for room with poll, then write no more than fits for certain.
  const std::size_t most = has_no_reader(fd_) ? SSIZE_MAX : PIPE_BUF;
  std::string_view rest = batch.text;
  while (!rest.empty()) {
    if (most == PIPE_BUF) {
      const bool late = stopping_ && std::chrono::steady_clock::now() >= give_up_at_;
      pollfd room{fd_, POLLOUT, 0};
      const int ready = ::poll(&room, 1, late ? 0 : 100);
      if (ready == 0 && late) break;
      if (ready == 0) continue;
    }
    const ssize_t written = ::write(fd_, rest.data(), std::min(rest.size(), most));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  const auto lost = static_cast<std::uint64_t>(std::count(rest.begin(), rest.end(), '\n'));
  if (lost != 0) dropped_.fetch_add(lost, std::memory_order_relaxed);
}

void AccessLines::append(const AccessEntry& entry) {
  if (log_.off()) return;
  append_access_line(text_, entry);
  ++lines_;
  if (text_.size() >= hand_over_at) flush();
}

void AccessLines::flush() { log_.take(text_, std::exchange(lines_, 0)); }

}  // namespace headgate::gateway
