#include "gateway/config_watch.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "config/load.hpp"

namespace headgate::gateway {

namespace {

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
    : path_(std::move(path)), reload_(std::move(reload)), timer_(io), stamp_(stamp_of(path_)) {
  read();
  wait();
}

void ConfigWatch::read() { text_ = text_of(path_); }

ConfigWatch::Stamp ConfigWatch::stamp_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

void ConfigWatch::wait() {
  timer_.expires_after(look_every);
  timer_.async_wait([this](const backends::ErrorCode& stopped) {
    if (stopped) return;
    look();
    wait();
  });
}

void ConfigWatch::look() {
  const Time now = std::chrono::steady_clock::now();
  const Stamp stamp = stamp_of(path_);
  if (stamp != stamp_) {
    stamp_ = stamp;
    if (first_change_ == never) first_change_ = now;
    settled_at_ = std::min(after(now, settle), after(first_change_, postponed_max));
  }
  if (now < settled_at_) return;
  first_change_ = settled_at_ = never;
  if (text_of(path_) != text_) reload_();  // one that has gone is said too
}

}  // namespace headgate::gateway
