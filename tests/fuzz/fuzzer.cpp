// libFuzzer's side: one binary for all targets, chosen by --target=NAME.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/targets.hpp"

namespace {
const headgate::fuzz::Target* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* count, char*** args);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerInitialize(int* count, char*** args) {
  for (int i = 1; i < *count; ++i) {
    for (const headgate::fuzz::Target& target : headgate::fuzz::targets) {
      if ((*args)[i] == "--target=" + std::string(target.name)) chosen = &target;
    }
  }
  headgate::fuzz::check(chosen != nullptr, "which one? --target=head, framing, skim, splice or sse");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
