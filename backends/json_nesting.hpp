// How deep JSON text is nested, before a parser or printer that recurses is asked to take it.
#pragma once

#include <string_view>

namespace headgate::backends {

inline constexpr int json_levels_max = 32;

// Counts brackets outside of strings; of text that is no JSON the answer means nothing.
inline bool too_deep(std::string_view json) {
  int level = 0;
  bool quoted = false;
  for (std::size_t n = 0; n < json.size(); ++n) {
    const char c = json[n];
    if (quoted) {
      if (c == '\\') ++n;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++level > json_levels_max) return true;
    } else if (c == ']' || c == '}') {
      --level;
    }
  }
  return false;
}

}  // namespace headgate::backends
