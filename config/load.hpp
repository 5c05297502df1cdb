// From the text of a configuration file to Options: JSON with // and /* */ comments and trailing commas, ${ENV} inside
// strings ($${ for a plain ${), every fault reported with its line and JSON path. A file is at most 8 MiB, nested at
// most 32 deep. Also what is printed from the same field descriptions: JSON Schema, reference, effective values.
//
//   Loaded loaded = load_file("headgate.jsonc");
//   for (const Problem& p : loaded.problems) std::cerr << to_text(p, "headgate.jsonc") << '\n';
//   if (loaded.options) catalog = make_catalog(*loaded.options, ids, 1);
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.hpp"
#include "config/problem.hpp"

namespace headgate::config {

inline constexpr std::size_t file_bytes_max = 8 << 20;

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

Environment process_environment();

struct Loaded {
  std::optional<Options> options;  // set when there is no problem
  std::vector<Problem> problems;   // by line
};

// `sets` are values that replace those of the text: set_field.hpp.
Loaded load_text(std::string_view text, const Environment& environment, const std::vector<std::string>& sets = {});
// With process_environment(); a file that can't be read is a Problem.
Loaded load_file(const std::string& path, const std::vector<std::string>& sets = {});

std::string schema();                          // JSON Schema, draft 2020-12
std::string reference();                       // config/reference.md
std::string redacted(const Options& options);  // every effective value as JSON, secrets as ***

}  // namespace headgate::config
