// Writes the event log (config/event_codec.hpp): the Dispatcher's host adds records under its lock, a thread of its own
// writes them. Adding copies some 50 bytes; a full chunk goes to the writer under a second lock that is held for a few
// instructions. When more than backlog_max wait for the writer, records are lost, counted and marked by a Gap. A file
// that has its size moves to FILE.1, and a new one goes on with an image of the Dispatcher: at most two are kept. What
// a file of that name held before moves there too.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "config/event_codec.hpp"

namespace headgate::gateway {

class EventLog {
 public:
  static constexpr std::size_t chunk_bytes = 256u << 10;
  static constexpr std::size_t backlog_max = 16u << 20;

  // Throws std::system_error: the file cannot be opened, is no file, or is another process's event log. `first_line`
  // with its end. `bytes_max`: of one file, which may exceed it by what one call brought.
  EventLog(const std::string& file, std::uint64_t bytes_max, std::string first_line);
  // Of a descriptor, which is closed at the end and has no size; `name` is for messages.
  EventLog(int fd, std::string name, std::string first_line);
  ~EventLog();  // writes all that was added
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Under the lock of the host.
  template <class E>
  void add(E event) {
    std::size_t most = config::plain_event_bytes_max;
    if constexpr (
        requires { event.plan; } || requires { event.progress; })
      most = config::write_event(event, nullptr);
    if (char* const at = room(most)) used_ += config::write_event(event, at);
  }
  void flush();  // to the writer, which looks 20 times a second
  void set_first_line(std::string line) { first_line_ = std::move(line); }  // of files begun from now on
  // The file has its size: to be asked between calls, and followed by begin_file() with Dispatcher::image().
  bool full() const { return lost_ == 0 && !failed() && file_bytes_ + used_ >= limit_; }
  void begin_file(std::string image);  // or, while the writer is behind, later

  // Any thread.
  std::uint64_t lost() const { return lost_total_.load(std::memory_order_relaxed); }  // records
  // Nothing more is kept: it could not be written.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

 private:
  EventLog(int fd, std::string name, std::uint64_t bytes_max, std::string first_line);
  struct Chunk {
    std::vector<char> bytes;
    bool begins_file = false;
  };
  char* room(std::size_t bytes) {
    if (lost_ == 0 && used_ + bytes <= usable_) return chunk_.bytes.data() + used_;
    return room_in_next(bytes);
  }
  char* room_in_next(std::size_t bytes);
  void mark_gap();
  void close(bool continued);
  bool hand_over();
  void hand_over_locked();
  void start_chunk(std::size_t bytes);
  void run();
  void next_file();
  void write(const Chunk& chunk);

  const std::string name_;
  const std::uint64_t bytes_max_;
  std::string first_line_;
  int fd_;  // the writer's
  Chunk chunk_;
  std::size_t used_ = 0, usable_ = 0;  // of the chunk; behind what is usable a Gap and a Closed have their place
  std::uint64_t file_bytes_ = 0;       // handed over
  std::uint64_t limit_;                // of these
  std::uint64_t lost_ = 0;             // records since the last one that was kept
  std::atomic<std::uint64_t> lost_total_{0};
  std::atomic<bool> failed_{false};
  bool said_lost_ = false;  // the writer's own

  std::mutex mutex_;  // guards the members up to thread_
  std::condition_variable stopped_;
  std::vector<Chunk> waiting_, spare_;
  std::size_t backlog_ = 0;  // bytes waiting or being written
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace headgate::gateway
