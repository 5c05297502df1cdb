// The rules that span fields: names that must exist or be unique, values that must agree, what a public address needs.
// Called after reading; leaves out what the reader has already found faulty.
#pragma once

#include "config/node.hpp"
#include "config/options.hpp"

namespace headgate::config {

void validate(const Options& options, const Place& root, Problems& problems);

}  // namespace headgate::config
