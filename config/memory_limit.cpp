#include "config/memory_limit.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

namespace headgate::config {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

std::uint64_t first_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end != text.data() ? value : no_limit;  // "max" is no number
}

std::uint64_t limit_in(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  return std::getline(in, line) ? first_number(line) : no_limit;
}

// A limit on any group above ours binds too. In a container the path may lie outside what is mounted: the root of the
// mount is then our own group, and is always looked at.
std::uint64_t lowest_upwards(const std::string& mount, std::string group, const char* file) {
  std::uint64_t lowest = limit_in(mount + "/" + file);
  while (!group.empty() && group != "/") {
    lowest = std::min(lowest, limit_in(mount + group + "/" + file));
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
  return lowest;
}

std::uint64_t cgroup_limit(const std::string& root) {
  std::uint64_t lowest = no_limit;
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // hierarchy:controllers:/path
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      lowest = std::min(lowest, lowest_upwards(root + "/sys/fs/cgroup", group, "memory.max"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      lowest = std::min(lowest, lowest_upwards(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
  }
  return lowest;
}

std::uint64_t ram(const std::string& root) {
  std::ifstream in(root + "/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("MemTotal:", 0) != 0) continue;
    const auto digits = line.find_first_of("0123456789");
    if (digits == std::string::npos) break;
    const std::uint64_t kib = first_number(std::string_view(line).substr(digits));
    return kib < no_limit / 1024 ? kib * 1024 : no_limit;
  }
  return no_limit;
}

}  // namespace

std::uint64_t memory_limit_bytes(const std::string& root) { return std::min(ram(root), cgroup_limit(root)); }

}  // namespace headgate::config
