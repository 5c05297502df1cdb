// JSON with // and /* */ comments and trailing commas, made plain: both become spaces, line ends stay, so every byte
// keeps its place. A comment that isn't closed and a NUL byte are problems.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/problem.hpp"

namespace headgate::config {

std::optional<std::string> plain_json(std::string_view text, Problems& problems);

}  // namespace headgate::config
