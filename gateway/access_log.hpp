// One line per request, as a JSON object. Never a prompt, never a key: the path is cut at its '?'.
//
//   AccessLog log("stdout");                // one per process: owns the writer thread
//   AccessLines lines(log);                 // one per shard, used by its thread only
//   lines.append(entry);                    // formats into a buffer; at 128 KiB the buffer goes to the writer
//   lines.flush();                          // the shard's timer, each 100 ms; the writer looks as often
//
// A line costs no lock, no system call and, once the buffers have grown, no allocation; a hand-over costs one lock.
// A caller never waits for the writer: when more than 4 MiB wait for it, a handed-over buffer is dropped and its lines
// are counted. Times are milliseconds with three decimals; ttft_ms is null where no content came.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gateway/ending.hpp"
#include "gateway/spinning_mutex.hpp"
#include "policies/base/time.hpp"

namespace headgate::gateway {

struct AccessEntry {
  std::chrono::system_clock::time_point at{};     // when the request ended
  std::string_view request_id, client, key_name;  // client: address; key_name: empty for an anonymous caller
  std::string_view method, path, route;           // path: the target as received; route: empty when none was found
  bool stream = false;
  std::uint16_t status = 0;  // 499: the caller left before a status was sent
  std::uint64_t bytes = 0;   // sent to the caller, heads included
  std::uint32_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;
  bool estimated = false;  // tokens were counted by us, not reported
  Nanos queued{0};
  std::optional<Nanos> ttft;  // from the request's first byte
  Nanos total{0};
  std::string_view backend;  // pool/name of the last attempt; empty: none
  std::uint32_t attempts = 0;
  Ending outcome = Ending::ok;
  std::string_view cause;     // the code of the refusal or failure; empty when ok
  std::string_view last_end;  // how the last attempt ended, when not well; empty: no such line
};

// request_id, cause and method hold nothing that JSON would escape: request_head.cpp and the wire rules see to that.
void append_access_line(std::string& out, const AccessEntry& entry);

class AccessLog {
 public:
  static constexpr std::size_t backlog_max = 4u << 20;

  // stdout, stderr, off, or a file name (appended to). Throws std::system_error if the file cannot be opened.
  explicit AccessLog(std::string destination);
  ~AccessLog();  // writes what was handed over, for at most 2 s, then stops
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  // Opens the destination (again): after a reload, or SIGHUP for log rotation. Empty, or what went wrong; then the old
  // one stays in use. Any thread.
  std::string reopen(std::string destination);
  bool off() const { return off_.load(std::memory_order_relaxed); }
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }  // lines

  // Takes the text and leaves an empty buffer, usually a used one, in its place. Any thread.
  void take(std::string& text, std::uint32_t lines);

 private:
  struct Batch {
    std::string text;
    std::uint32_t lines = 0;
  };
  void run();
  void wake();
  void write(const Batch& batch);

  std::atomic<bool> off_{false};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<bool> stopping_{false};
  int wakeup_ = -1;      // eventfd: the writer need not wait for its next look
  SpinningMutex mutex_;  // guards the members up to thread_
  std::vector<Batch> waiting_;
  std::vector<std::string> spare_;
  std::size_t backlog_ = 0;  // bytes waiting or being written
  int next_fd_ = -1;         // opened by reopen(), not yet in use
  int fd_ = -1;              // the writer's own
  std::chrono::steady_clock::time_point give_up_at_{};
  std::thread thread_;
};

class AccessLines {
 public:
  static constexpr std::size_t hand_over_at = 128u << 10;

  explicit AccessLines(AccessLog& log) : log_(log) {}
  ~AccessLines() { flush(); }
  AccessLines(const AccessLines&) = delete;
  AccessLines& operator=(const AccessLines&) = delete;

  void append(const AccessEntry& entry);
  void flush();

 private:
  AccessLog& log_;
  std::string text_;
  std::uint32_t lines_ = 0;
};

}  // namespace headgate::gateway
