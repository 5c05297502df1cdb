// ${NAME} inside a string of the file stands for an environment variable; $${ for a plain ${.
#pragma once

#include <string>
#include <string_view>

#include "config/load.hpp"
#include "config/parsed.hpp"

namespace headgate::config {

inline constexpr std::size_t expanded_bytes_max = 64 << 10;

// The problem names variables, never values; it is a sentence of its own.
Parsed<std::string> expand(std::string_view text, const Environment& environment);

}  // namespace headgate::config
