// Tells when the configuration file's text has changed and nothing has happened to it for half a second: written in
// place or in parts, replaced by rename, or behind symbolic links that were swapped. What the path leads to is looked
// at ten times a second: that costs one system call, works on every file system and needs nothing that can run out.
//
//   ConfigWatch watch(io, path, [&] { reload(); });
//   watch.read();   // before any other reload: that text is known
#pragma once

#include <sys/types.h>

#include <boost/asio/basic_waitable_timer.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "backends/io/io.hpp"
#include "policies/base/time.hpp"

namespace headgate::gateway {

class ConfigWatch {
 public:
  static constexpr Nanos look_every = std::chrono::milliseconds(100);
  static constexpr Nanos settle = std::chrono::milliseconds(500);
  static constexpr Nanos postponed_max = std::chrono::seconds(5);  // by further changes

  ConfigWatch(boost::asio::io_context& io, std::string path, std::function<void()> reload);
  void read();
  void stop() { timer_.cancel(); }

 private:
  // Of the file behind all links; zeros while there is none.
  struct Stamp {
    dev_t device = 0;
    ino_t inode = 0;
    off_t bytes = 0;
    std::int64_t written_s = 0, written_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  static Stamp stamp_of(const std::string& path);
  void wait();
  void look();

  const std::string path_;
  const std::function<void()> reload_;
  backends::asio::basic_waitable_timer<std::chrono::steady_clock,
                                       backends::asio::wait_traits<std::chrono::steady_clock>, backends::Executor>
      timer_;
  Time first_change_ = never, settled_at_ = never;
  Stamp stamp_;
  std::string text_;
};

}  // namespace headgate::gateway
