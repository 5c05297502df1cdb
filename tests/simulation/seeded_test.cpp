// Seeded histories of whole gateways in virtual time, the serving Dispatcher among them. While they are played and
// after them the books must be right. HEADGATE_SEED=17 plays that one, HEADGATE_SEEDS=5000 so many.
#include <gtest/gtest.h>

#include <cstdlib>

#include "books.hpp"

namespace headgate::loadtest {
namespace {

#ifdef HEADGATE_SANITIZED
constexpr std::uint64_t usual_seeds = 400, least = 40;
#else
constexpr std::uint64_t usual_seeds = 2400, least = 1000;
#endif

std::uint64_t from_environment(const char* name, std::uint64_t usual) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
}

TEST(SeededWorlds, KeepTheirBooksAndEndEveryRequestOnce) {
  const std::uint64_t only = from_environment("HEADGATE_SEED", 0),
                      seeds = from_environment("HEADGATE_SEEDS", usual_seeds);
  std::map<std::string, std::uint64_t> seen;
  for (std::uint64_t seed = only != 0 ? only : 1; seed <= (only != 0 ? only : seeds); ++seed) {
    const Played played = play_world(seed);
    ASSERT_EQ(played.wrong, "") << "HEADGATE_SEED=" << seed << " build/release/tests_simulation";
    for (const auto& [end, times] : played.ends) seen[end] += times;
    for (const auto& [order, times] : played.orders) seen[order] += times;
    if (seed % 100'000 == 0) std::fprintf(stderr, "%llu worlds played\n", static_cast<unsigned long long>(seed));
  }
  if (only != 0) return;
  if (seeds < usual_seeds) return;
  // Each order and each code at least 1,000 times in the usual worlds.
  for (const char* order : {"start first",
                            "start queued",
                            "start retry",
                            "start evacuation",
                            "answer model_not_found",
                            "answer no_healthy_backend",
                            "answer queue_full",
                            "answer deadline_unmeetable",
                            "answer deadline_exceeded",
                            "answer upstream_status",
                            "answer upstream_failed",
                            "answer upstream_timeout",
                            "answer upstream_auth",
                            "answer stream_cut",
                            "answer upstream_socket",
                            "answer requests_per_minute",
                            "answer tokens_per_minute",
                            "answer concurrency",
                            "answer request_too_large_for_limit",
                            "answer cost_budget_unmeetable"}) {
    EXPECT_GE(seen[order], least) << order;
  }
  for (const char* end : {"ok ", "left "}) EXPECT_GE(seen[end], least) << end;
  for (const auto& [what, times] : seen)
    std::printf("%8llu  %s\n", static_cast<unsigned long long>(times), what.c_str());
}

}  // namespace
}  // namespace headgate::loadtest
