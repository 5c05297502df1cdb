// Request bodies with prompts of exactly N words, deterministic by seed and request number.
#pragma once

#include <cstdint>
#include <string>

#include "loadtest/trace.hpp"
#include "loadtest/traffic_class.hpp"

namespace headgate::loadtest {

enum class Path : std::uint8_t { chat, completions };

// planned.input words of 2 to 8 letters separated by single spaces; count_words() of it is that. Two requests whose
// prefixes begin with the same hash ids begin with the same text; without any, no two are alike.
std::string prompt_text(std::uint64_t seed, std::uint64_t id, const Planned& planned);

// A whole HTTP request (head and body) that asks for planned.output tokens; streams ask for include_usage.
struct Asking {
  Path path = Path::chat;
  std::string authority, api_key;
  std::uint64_t seed = 1;
};
std::string request_bytes(const Asking& asking, const TrafficClass& of, std::uint64_t id, const Planned& planned);

std::string json_string(std::string_view text);  // with its quotes

}  // namespace headgate::loadtest
