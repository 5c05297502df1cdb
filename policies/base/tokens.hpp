// The token rule of everything that has no tokenizer: in the mock model servers and their load one word is one token;
// for text of unknown language a token is taken as four bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace headgate {

// Words separated by ASCII white space. The mock engine counts prompts and answers so, and the load generator checks
// them so.
constexpr std::uint32_t count_words(std::string_view text) {
  std::uint32_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    words += static_cast<std::uint32_t>(!blank && !inside);
    inside = !blank;
  }
  return words;
}

// Prior for real model servers until their reported usage corrects it.
constexpr std::uint32_t estimate_tokens(std::uint64_t text_bytes) {
  const std::uint64_t tokens = (text_bytes + 3) / 4;
  return tokens > 0xffffffffu ? 0xffffffffu : static_cast<std::uint32_t>(tokens);
}

}  // namespace headgate
