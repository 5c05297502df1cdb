// For messages of failed tests.
#pragma once

#include <string>

namespace headgate::wire {

inline std::string printable(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("\r\n", at)) != std::string::npos; at += 2) {
    text.replace(at, 1, text[at] == '\r' ? "\\r" : "\\n");
  }
  return text;
}

}  // namespace headgate::wire
