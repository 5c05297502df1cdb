// In a file of its own: inlined beside its users, g++ takes the replaced pair for a mismatched one.
#include "policies/allocations.hpp"

#ifndef HEADGATE_SANITIZED

#include <cstdlib>
#include <new>

namespace {

std::size_t calls = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++calls;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace headgate::policies {

std::size_t allocations() { return calls; }

}  // namespace headgate::policies

#endif
