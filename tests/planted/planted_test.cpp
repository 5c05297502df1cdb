// Proves the books of the seeded worlds: each planted fault must be caught within 1,000 seeds.
#include "planted.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <string>

#include "simulation/books.hpp"

namespace headgate {

int planted = 0;

namespace {

constexpr const char* names[] = {
#include "names.inc"
};

constexpr std::uint64_t seeds_max = 1000;
constexpr itimerval longest_world{{}, {.tv_sec = 3, .tv_usec = 0}};  // of CPU time, a thousand times the usual

struct Catch {
  std::uint64_t seed;  // played last
  char wrong[128];     // empty: nothing was found
};

// Where parent and child both see it.
Catch& shared_catch() {
  void* const page = ::mmap(nullptr, sizeof(Catch), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  return *new (page) Catch{};
}

// In a process of its own, as a fault may crash it or never end.
void play_with(int fault, Catch& found) noexcept {
  found = {};
  const pid_t child = ::fork();
  if (child == 0) {
    planted = fault;
    while (found.wrong[0] == 0 && found.seed < seeds_max) {
      ::setitimer(ITIMER_PROF, &longest_world, nullptr);
      loadtest::play_world(++found.seed).wrong.copy(found.wrong, sizeof found.wrong - 1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFSIGNALED(status)) return;
  std::string(WTERMSIG(status) == SIGPROF ? "it hangs" : "it crashes").copy(found.wrong, sizeof found.wrong - 1);
}

TEST(Planted, FaultsAreCaughtWithin1000Seeds) {
  ASSERT_GE(std::size(names), 20u);
  Catch& found = shared_catch();
  for (std::size_t n = 0; n < std::size(names); ++n) {
    play_with(static_cast<int>(n) + 1, found);
    EXPECT_NE(std::string(found.wrong), "") << names[n] << " is not caught";
    std::printf("%-40s seed %4llu: %s\n", names[n], static_cast<unsigned long long>(found.seed), found.wrong);
  }
  ::munmap(&found, sizeof found);
}

TEST(Planted, CopyWithoutAFaultIsRight) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) ASSERT_EQ(loadtest::play_world(seed).wrong, "") << seed;
}

}  // namespace
}  // namespace headgate
