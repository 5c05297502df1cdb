// A model server's profile by name, or from a file:
//   {
//     "base": "llama-3.1-8b-h100",   // what is not said is as there; without it as for a name alone: the fields'
//     defaults "step_fixed_us": 9000, "prefill_per_token_us": 41.5, "slots": 128
//   }
// Times are in microseconds and may have a fraction. Comments are allowed. Fields: profile.hpp's, with their units.
#pragma once

#include <optional>
#include <string>

#include "backends/engine/profile.hpp"

namespace headgate::mock {

// `name` is that of a built-in profile, else a file's. None: `problem` says what is wrong, for a file with its line or
// field.
std::optional<engine::Profile> load_profile(const std::string& name, std::string& problem);

std::optional<engine::Profile> read_profile(const std::string& text, std::string& problem);

}  // namespace headgate::mock
