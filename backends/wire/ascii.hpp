// Classes of characters that HTTP and JSON share.
#pragma once

#include <string_view>

namespace headgate::wire {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Without the blanks (OWS of RFC 9110, 5.6.3) round it.
constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace headgate::wire
