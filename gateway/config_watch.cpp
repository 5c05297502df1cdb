#include "gateway/config_watch.hpp"

#include <sys/inotify.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "config/load.hpp"

namespace headgate::gateway {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t changes = IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE;

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

// Empty while it cannot be read, as between a deletion and a new file.
std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(config::file_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

ConfigWatch::ConfigWatch(boost::asio::io_context& io, std::string path, std::function<void()> reload)
    : path_(std::move(path)), reload_(std::move(reload)), inotify_(io), timer_(io) {
  const int fd = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::system_category(), "cannot watch " + path_);
  inotify_.assign(fd);
  read();
  watch_folders();
  wait();
}

void ConfigWatch::read() { text_ = text_of(path_); }

void ConfigWatch::stop() {
  backends::ErrorCode ignored;
  inotify_.close(ignored);
  timer_.cancel();
}

// The one that holds the name and, behind links, the one that holds the text. Watching a folder again changes nothing.
void ConfigWatch::watch_folders() {
  std::error_code gone;
  const fs::path real = fs::canonical(path_, gone);
  real_name_ = real.filename();
  for (const fs::path& folder : {folder_of(path_), folder_of(gone ? fs::path(path_) : real)}) {
    if (::inotify_add_watch(inotify_.native_handle(), folder.c_str(), changes) < 0 && errno != ENOENT) {
      throw std::system_error(errno, std::system_category(), "cannot watch " + folder.string());
    }
  }
}

// Not what is written to other files there, such as a log.
bool ConfigWatch::concerns_us(std::size_t bytes) const {
  for (std::size_t at = 0; at + sizeof(inotify_event) <= bytes;) {
    const auto& event = *reinterpret_cast<const inotify_event*>(events_.data() + at);
    const std::string_view name(event.len > 0 ? event.name : "");
    if ((event.mask & ~std::uint32_t{IN_MODIFY}) != 0 || name == real_name_ || name == fs::path(path_).filename())
      return true;
    at += sizeof event + event.len;
  }
  return false;
}

void ConfigWatch::wait() {
  inotify_.async_read_some(boost::asio::buffer(events_), [this](const backends::ErrorCode& error, std::size_t bytes) {
    if (error) return;
    if (concerns_us(bytes)) changed();
    wait();
  });
}

void ConfigWatch::changed() {
  const Time now = std::chrono::steady_clock::now();
  if (first_change_ == never) first_change_ = now;
  timer_.expires_at(std::min(after(now, settle), after(first_change_, postponed_max)));
  timer_.async_wait([this](const backends::ErrorCode& moved) {
    if (!moved) settled();
  });
}

void ConfigWatch::settled() {
  first_change_ = never;
  watch_folders();
  const std::string now = text_of(path_);
  if (!now.empty() && now != text_) reload_();
}

}  // namespace headgate::gateway
