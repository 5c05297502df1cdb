#include "support/product.hpp"

#include <cstdlib>

namespace headgate::support {

const std::string& product() {
  static const std::string path = [] {
    const char* const named = std::getenv("HEADGATE_BINARY");
    return std::string(named != nullptr ? named : HEADGATE_BINARY);
  }();
  return path;
}

bool product_sanitized() {
#ifdef HEADGATE_SANITIZED
  return true;
#else
  return std::getenv("HEADGATE_SANITIZED") != nullptr;
#endif
}

}  // namespace headgate::support
