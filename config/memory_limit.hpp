// How much memory this process may use: the lower of RAM and every cgroup limit above it (v2 memory.max, v1
// memory.limit_in_bytes). What cannot be read is taken as no limit.
#pragma once

#include <cstdint>
#include <string>

namespace headgate::config {

// `root` is put before /proc and /sys, for tests.
std::uint64_t memory_limit_bytes(const std::string& root = "");

}  // namespace headgate::config
