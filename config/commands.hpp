// What `headgate check`, `schema` and `schema --reference` do; each returns the exit code: 0, or 2 when the file has a
// problem.
#pragma once

#include <iosfwd>
#include <string>

namespace headgate::config {

// Problems go to `err`, a line each; "FILE: ok: 2 pools, 4 backends, 2 routes" to `out`. With `json` one object goes to
// `out` instead: file, ok, problems [{line, path, message}] or the counts and the effective config without secrets.
int check(const std::string& file, bool json, std::ostream& out, std::ostream& err);

int print_schema(std::ostream& out);
int print_reference(std::ostream& out);

}  // namespace headgate::config
