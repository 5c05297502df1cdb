// Runs against made-up /proc and /sys trees, then once against the machine it stands on.
#include "config/memory_limit.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace headgate::config {
namespace {

class Machine : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "headgate-memory-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    write("/proc/meminfo", "MemTotal:        8000000 kB\nMemFree: 1 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

constexpr std::uint64_t ram_bytes = 8000000ull * 1024;

TEST_F(Machine, WithoutCgroupsHasItsRam) { EXPECT_EQ(memory_limit_bytes(root_), ram_bytes); }

TEST_F(Machine, HasTheLowestLimitOnTheWayUp) {
  write("/proc/self/cgroup", "0::/a/b/c\n");
  write("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
  EXPECT_EQ(memory_limit_bytes(root_), ram_bytes);
  write("/sys/fs/cgroup/a/b/c/memory.max", "3000000000\n");
  EXPECT_EQ(memory_limit_bytes(root_), 3000000000u);
  write("/sys/fs/cgroup/a/memory.max", "1000000000\n");
  EXPECT_EQ(memory_limit_bytes(root_), 1000000000u);
}

TEST_F(Machine, InAContainerLooksAtTheRootOfTheMount) {
  write("/proc/self/cgroup", "0::/../outside\n");
  write("/sys/fs/cgroup/memory.max", "500000000\n");
  EXPECT_EQ(memory_limit_bytes(root_), 500000000u);
}

TEST_F(Machine, ReadsTheFirstVersionOfCgroupsToo) {
  write("/proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/docker/abc\n");
  write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "700000000\n");
  EXPECT_EQ(memory_limit_bytes(root_), 700000000u);
}

TEST_F(Machine, WithALimitOverItsRamHasItsRam) {
  write("/proc/self/cgroup", "5:memory:/\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory_limit_bytes(root_), ram_bytes);
}

TEST(MemoryLimit, OfThisMachineIsPlausible) {
  EXPECT_GT(memory_limit_bytes(), 16ull << 20);
  EXPECT_LT(memory_limit_bytes(), 1ull << 50);
}

}  // namespace
}  // namespace headgate::config
