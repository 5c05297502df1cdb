// The name most like a mistyped one: fewest single-character edits (insert, delete, replace, swap of neighbours; the
// optimal string alignment distance), letter case aside. Nothing when the best one is more than a third
// of the longer name away. Names over 64 characters are not compared.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headgate {

std::size_t edit_distance(std::string_view a, std::string_view b);

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> known);

// `; did you mean "slots"?`, or `; known here: a, b, c` when none is near (at most 12 are listed).
std::string suggestion(std::string_view name, std::span<const std::string> known);

}  // namespace headgate
