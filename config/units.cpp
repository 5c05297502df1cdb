#include "config/units.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>

namespace headgate::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 6> durations{{{"ns", 1},
                                         {"us", 1'000},
                                         {"ms", 1'000'000},
                                         {"s", 1'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"h", 3'600'000'000'000}}};

constexpr std::array<Unit, 9> sizes{{{"B", 1},
                                     {"KB", 1'000},
                                     {"KiB", 1ull << 10},
                                     {"MB", 1'000'000},
                                     {"MiB", 1ull << 20},
                                     {"GB", 1'000'000'000},
                                     {"GiB", 1ull << 30},
                                     {"TB", 1'000'000'000'000},
                                     {"TiB", 1ull << 40}}};

constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t fraction_digits_max = 18;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Number {
  std::uint64_t whole = 0, fraction = 0, scale = 1;  // whole + fraction / scale
};

// Takes the number off the front of `text`; the problem is empty when it was one.
std::string_view take_number(std::string_view& text, Number& out) {
  std::size_t at = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    const auto digit = static_cast<std::uint64_t>(text[at] - '0');
    if (out.whole > (largest - digit) / 10) return "is too large";
    out.whole = out.whole * 10 + digit;
  }
  if (at == 0) return "must begin with a number";
  if (at < text.size() && text[at] == '.') {
    const std::size_t point = at++;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      if (at - point > fraction_digits_max) return "has too many digits after the point";
      out.fraction = out.fraction * 10 + static_cast<std::uint64_t>(text[at] - '0');
      out.scale *= 10;
    }
    if (at == point + 1) return "needs a digit after the point";
  }
  text.remove_prefix(at);
  return {};
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string unit_meant(std::string_view unit, std::span<const Unit> units) {
  struct Alias {
    std::string_view word, unit;
  };
  static constexpr Alias aliases[] = {
      {"sec", "s"},     {"secs", "s"},    {"second", "s"},  {"seconds", "s"}, {"min", "m"},   {"mins", "m"},
      {"minute", "m"},  {"minutes", "m"}, {"hr", "h"},      {"hour", "h"},    {"hours", "h"}, {"msec", "ms"},
      {"millis", "ms"}, {"usec", "us"},   {"micros", "us"}, {"µs", "us"},     {"k", "KiB"},   {"m", "MiB"},
      {"g", "GiB"},     {"t", "TiB"},     {"bytes", "B"},   {"byte", "B"}};
  const auto has = [&](std::string_view name) {
    return std::any_of(units.begin(), units.end(), [name](const Unit& u) { return u.name == name; });
  };
  const std::string word = lower(unit);
  for (const Unit& known : units) {
    if (lower(known.name) == word) return std::string(known.name);
  }
  for (const Alias& alias : aliases) {
    if (alias.word == word && has(alias.unit)) return std::string(alias.unit);
  }
  return {};
}

std::string unit_problem(std::string_view number, std::string_view unit, std::span<const Unit> units,
                         std::string_view list) {
  if (unit.empty()) return "must end in a unit out of " + std::string(list);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  while (!number.empty() && number.back() == ' ') number.remove_suffix(1);
  std::string problem = "must be a number followed by a unit out of " + std::string(list);
  const std::string meant = unit_meant(unit, units);
  if (!meant.empty()) problem += "; did you mean \"" + std::string(number) + meant + "\"?";
  return problem;
}

Parsed<std::uint64_t> parse(std::string_view text, std::span<const Unit> units, std::string_view list) {
  std::string_view rest = text;
  Number number;
  if (const auto problem = take_number(rest, number); !problem.empty()) return {std::nullopt, std::string(problem)};
  const auto unit = std::find_if(units.begin(), units.end(), [rest](const Unit& u) { return u.name == rest; });
  if (unit == units.end()) {
    return {std::nullopt, unit_problem(text.substr(0, text.size() - rest.size()), rest, units, list)};
  }
  if (number.whole > largest / unit->factor) return {std::nullopt, "is too large"};
  __extension__ using Wide = unsigned __int128;
  const Wide part = static_cast<Wide>(number.fraction) * unit->factor;
  if (part % number.scale != 0) {
    return {std::nullopt, "must come to a whole number of " + std::string(units.front().name)};
  }
  const std::uint64_t base = number.whole * unit->factor;
  const auto added = static_cast<std::uint64_t>(part / number.scale);
  if (added > largest - base) return {std::nullopt, "is too large"};
  return {base + added, {}};
}

std::string format(std::uint64_t value, std::span<const Unit> units, std::string_view zero_unit) {
  if (value == 0) return "0" + std::string(zero_unit);
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    // of two units that divide it, the one with the shorter number
    if (value % unit.factor == 0 && unit.factor > best->factor) best = &unit;
  }
  return std::to_string(value / best->factor) + std::string(best->name);
}

}  // namespace

Parsed<Nanos> parse_duration(std::string_view text) {
  const auto parsed = parse(text, durations, duration_units);
  if (!parsed) return {std::nullopt, parsed.problem};
  return {Nanos{static_cast<std::int64_t>(*parsed)}, {}};
}

Parsed<Bytes> parse_size(std::string_view text) {
  const auto parsed = parse(text, sizes, size_units);
  if (!parsed) return {std::nullopt, parsed.problem};
  return {Bytes{*parsed}, {}};
}

std::string format_duration(Nanos duration) {
  if (duration < Nanos{0}) return "-" + format_duration(-duration);
  return format(static_cast<std::uint64_t>(duration.count()), durations, "s");
}

std::string format_size(Bytes size) { return format(size.count, sizes, "B"); }

}  // namespace headgate::config
