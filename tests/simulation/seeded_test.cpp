// Seeded histories of whole gateways in virtual time, the serving Dispatcher among them. While they are played and
// after them the books must be right. HEADGATE_SEED=17 plays that one, HEADGATE_SEEDS=5000 so many.
#include <gtest/gtest.h>

#include <cstdlib>

#include "books.hpp"

namespace headgate::loadtest {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t usual) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
}

TEST(SeededWorlds, KeepTheirBooksAndEndEveryRequestOnce) {
  const std::uint64_t only = from_environment("HEADGATE_SEED", 0), seeds = from_environment("HEADGATE_SEEDS", 1000);
  std::map<std::string, std::uint64_t> seen;
  for (std::uint64_t seed = only != 0 ? only : 1; seed <= (only != 0 ? only : seeds); ++seed) {
    const Played played = play_world(seed);
    ASSERT_EQ(played.wrong, "") << "HEADGATE_SEED=" << seed << " build/release/tests_simulation";
    for (const auto& [end, times] : played.ends) seen[end] += times;
    if (seed % 100'000 == 0) std::fprintf(stderr, "%llu worlds played\n", static_cast<unsigned long long>(seed));
  }
  if (only != 0) return;
  for (const char* end : {"ok ", "refused queue_full", "refused deadline_unmeetable", "refused deadline_exceeded",
                          "refused no_healthy_backend", "failed_before_first_token upstream_failed",
                          "failed_before_first_token upstream_timeout", "failed_before_first_token upstream_status",
                          "cut stream_cut", "left "}) {
    EXPECT_GE(seen[end], seeds) << end;
    std::printf("%8llu  %s\n", static_cast<unsigned long long>(seen[end]), end);
    seen.erase(end);
  }
  for (const auto& [end, times] : seen) std::printf("%8llu  %s\n", static_cast<unsigned long long>(times), end.c_str());
}

}  // namespace
}  // namespace headgate::loadtest
