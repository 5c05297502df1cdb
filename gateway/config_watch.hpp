// Tells when the configuration file's text has changed and nothing has happened to it for half a second: written in
// place or in parts, replaced by rename, or behind a symbolic link that was swapped. The folder is watched, not the
// file.
//
//   ConfigWatch watch(io, path, [&] { reload(); });   // throws std::system_error if the system has no inotify left
//   watch.read();   // before any other reload: that text is known
#pragma once

#include <array>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <functional>
#include <string>

#include "backends/io/io.hpp"
#include "policies/base/time.hpp"

namespace headgate::gateway {

class ConfigWatch {
 public:
  static constexpr Nanos settle = std::chrono::milliseconds(500);
  static constexpr Nanos postponed_max = std::chrono::seconds(5);  // by further changes

  ConfigWatch(boost::asio::io_context& io, std::string path, std::function<void()> reload);
  void read();
  void stop();

 private:
  void watch_folders();
  void wait();
  bool concerns_us(std::size_t bytes) const;
  void changed();
  void settled();

  const std::string path_;
  const std::function<void()> reload_;
  backends::asio::posix::basic_stream_descriptor<backends::Executor> inotify_;
  backends::asio::basic_waitable_timer<std::chrono::steady_clock,
                                       backends::asio::wait_traits<std::chrono::steady_clock>, backends::Executor>
      timer_;
  Time first_change_ = never;
  std::string text_, real_name_;
  alignas(8) std::array<char, 4096> events_{};
};

}  // namespace headgate::gateway
