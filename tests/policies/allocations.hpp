// How often this binary has called the global operator new. Not under sanitizers, which replace it themselves.
#pragma once

#include <cstddef>

namespace headgate::policies {

std::size_t allocations();

}  // namespace headgate::policies
