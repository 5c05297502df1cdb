// JSON written by hand: text appended to a string that is reused. No tree, no locale, no allocation of its own.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

namespace headgate::gateway {

// With quotes. Control characters, quote and backslash are escaped; each byte that is not part of valid UTF-8 becomes
// U+FFFD, so that the result is always valid JSON.
void append_quoted(std::string& out, std::string_view text);

void append_escaped(std::string& out, std::string_view text);  // the same without the quotes

inline constexpr std::size_t quoted_growth = 6;  // most bytes that one byte of text becomes, without the quotes

// Nothing in it needs an escape: printable ASCII without quote and backslash.
bool stands_as_it_is(std::string_view text);

template <std::integral T>
void append_number(std::string& out, T value) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, static_cast<std::size_t>(end - digits));
}

// A number given in thousandths, with its three decimals: 1234567 -> 1234.567
void append_thousandths(std::string& out, std::int64_t thousandths);

// Dollars with nine decimals, never in scientific form.
void append_usd(std::string& out, double usd);

// The shortest text that reads back as the same double.
void append_double(std::string& out, double value);

}  // namespace headgate::gateway
