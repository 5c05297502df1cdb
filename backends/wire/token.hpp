// The characters of an HTTP token (RFC 9110, 5.6.2): methods and field names.
#pragma once

#include <array>
#include <string_view>

namespace headgate::wire {

inline constexpr std::array<bool, 256> token_table = [] {
  std::array<bool, 256> table{};
  for (unsigned c = '0'; c <= '9'; ++c) table[c] = true;
  for (unsigned c = 'a'; c <= 'z'; ++c) table[c] = table[c - 'a' + 'A'] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

inline bool is_token(char c) { return token_table[static_cast<unsigned char>(c)]; }

}  // namespace headgate::wire
