#include "backends/text_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace headgate::backends {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

std::optional<std::string> read_text_file(const std::string& path, std::size_t bytes_max, std::string& problem) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    problem = std::string("cannot be opened: ") + std::strerror(errno);
    return std::nullopt;
  }
  std::string text;
  std::array<char, 64 << 10> block;
  while (text.size() <= bytes_max) {
    const std::size_t got = std::fread(block.data(), 1, block.size(), file.get());
    text.append(block.data(), got);
    if (got < block.size()) break;
  }
  if (std::ferror(file.get()) != 0) {
    problem = std::string("cannot be read: ") + std::strerror(errno);
  } else if (text.size() > bytes_max) {
    problem = "has more than " + std::to_string(bytes_max) + " bytes, as many as it may";
  }
  if (!problem.empty()) return std::nullopt;
  return text;
}

}  // namespace headgate::backends
