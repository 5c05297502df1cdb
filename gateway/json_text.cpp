#include "gateway/json_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace headgate::gateway {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// Whether a byte of `word` is not plain: eight at once, by the carry of a subtraction ("Bit Twiddling Hacks", haszero
// and hasless). A hit may also be a false one next to a true one, never alone.
bool any_special(std::uint64_t word) {
  constexpr std::uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
  const auto has_zero = [](std::uint64_t x) { return (x - ones) & ~x; };
  const std::uint64_t special = word | ((word - ones * 0x20) & ~word) | has_zero(word ^ ones * '"') |
                                has_zero(word ^ ones * '\\') | has_zero(word ^ ones * 0x7f);
  return (special & tops) != 0;
}

bool plain(unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

// Length of the valid UTF-8 sequence at the start of `text` that is not ASCII, or 0.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  // The second byte's range excludes overlong forms, surrogates and what is above U+10FFFF (Unicode, table 3-7).
  const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

void append_escape(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  constexpr std::string_view hex = "0123456789abcdef";
  out += "\\u00";
  out += hex[c >> 4];
  out += hex[c & 15];
}

}  // namespace

bool stands_as_it_is(std::string_view text) {
  std::uint64_t word = 0;
  if (text.size() < sizeof word) return std::all_of(text.begin(), text.end(), plain);
  const char* const last = text.data() + text.size() - sizeof word;
  for (const char* at = text.data(); at < last; at += sizeof word) {
    std::memcpy(&word, at, sizeof word);
    if (any_special(word)) return false;
  }
  std::memcpy(&word, last, sizeof word);  // the rest, and some of it again
  return !any_special(word);
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_escaped(out, text);
  out += '"';
}

void append_escaped(std::string& out, std::string_view text) {
  if (stands_as_it_is(text)) {
    out += text;
    return;
  }
  while (!text.empty()) {
    std::size_t run = 0;
    while (run < text.size() && plain(static_cast<unsigned char>(text[run]))) ++run;
    out.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) break;
    std::size_t used = 1;
    if (static_cast<unsigned char>(text[0]) < 0x80) {
      append_escape(out, static_cast<unsigned char>(text[0]));
    } else if (const std::size_t length = sequence_length(text); length != 0) {
      out.append(text.substr(0, length));
      used = length;
    } else {
      out += replacement;
    }
    text.remove_prefix(used);
  }
}

void append_thousandths(std::string& out, std::int64_t thousandths) {
  if (thousandths < 0) {
    out += '-';
    thousandths = -thousandths;
  }
  append_number(out, thousandths / 1000);
  const auto rest = static_cast<int>(thousandths % 1000);
  const char decimals[4] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                            static_cast<char>('0' + rest % 10)};
  out.append(decimals, 4);
}

void append_usd(std::string& out, double usd) {
  char digits[64];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, usd, std::chars_format::fixed, 9);
  if (error == std::errc()) out.append(digits, static_cast<std::size_t>(end - digits));
}

void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {  // JSON has no word for it
    out += '0';
    return;
  }
  char digits[40];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, static_cast<std::size_t>(end - digits));
}

}  // namespace headgate::gateway
