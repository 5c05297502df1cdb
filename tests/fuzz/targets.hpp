// What is fuzzed. Each target takes any bytes and aborts, saying what, when something it checks does not hold.
//   ./run fuzz -n 10000000 head        (fuzzer.cpp, libFuzzer)
//   tests_fuzz                         replays the committed corpus (replay_test.cpp)
#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace headgate::fuzz {

void head(std::string_view bytes);     // request and answer heads: cut anywhere, and beside Beast
void framing(std::string_view bytes);  // chunked bodies: cut anywhere, and beside Beast
void skim(std::string_view bytes);     // request bodies beside nlohmann::json
void splice(std::string_view bytes);   // edited request bodies beside nlohmann::json
void sse(std::string_view bytes);      // streams of events: cut anywhere; answers beside nlohmann::json

struct Target {
  std::string_view name;
  void (*run)(std::string_view bytes);
};
inline constexpr Target targets[] = {
    {"head", head}, {"framing", framing}, {"skim", skim}, {"splice", splice}, {"sse", sse}};

inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

}  // namespace headgate::fuzz
