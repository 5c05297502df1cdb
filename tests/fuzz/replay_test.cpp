// The committed corpus of every fuzz target, as a plain test.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/targets.hpp"

namespace headgate::fuzz {
namespace {

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, HoldsForTheCorpus) {
  const std::filesystem::path corpus =
      std::filesystem::path(HEADGATE_SOURCE_DIR) / "tests/fuzz/corpus" / GetParam().name;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    GetParam().run(bytes);  // aborts when something does not hold
    ++files;
  }
  EXPECT_GT(files, 0);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Replay, testing::ValuesIn(targets),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace headgate::fuzz
