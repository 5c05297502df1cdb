// A whole file as text without reading it: for those that may be larger than memory should hold.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

namespace headgate::loadtest {

class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd < 0 || ::fstat(fd, &info) != 0) {
      problem_ = path + " cannot be opened: " + std::strerror(errno);
    } else if (!S_ISREG(info.st_mode)) {
      problem_ = path + " is no file";
    } else if (info.st_size > 0) {
      size_ = static_cast<std::size_t>(info.st_size);
      begin_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
      if (begin_ == MAP_FAILED) problem_ = path + " cannot be read: " + std::strerror(errno);
    }
    if (fd >= 0) ::close(fd);
  }
  ~MappedFile() {
    if (size_ > 0 && begin_ != MAP_FAILED) ::munmap(begin_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& problem() const { return problem_; }                              // empty: none
  std::string_view text() const { return {static_cast<const char*>(begin_), size_}; }  // without a problem

 private:
  void* begin_ = nullptr;
  std::size_t size_ = 0;
  std::string problem_;
};

}  // namespace headgate::loadtest
