// The program under test: this build's, or the one that HEADGATE_BINARY names. HEADGATE_SANITIZED=1 in the environment
// says that it is instrumented, so that tests built without instrumentation can run it.
#pragma once

#include <string>

namespace headgate::support {

const std::string& product();
bool product_sanitized();

}  // namespace headgate::support
