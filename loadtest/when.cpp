#include "loadtest/when.hpp"

#include <charconv>
#include <cmath>

#include "config/units.hpp"

namespace headgate::loadtest {

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

std::optional<When> parse_when(std::string_view text) {
  if (const auto duration = config::parse_duration(text)) {
    if (duration->count() < 0) return std::nullopt;
    return When{.at = *duration};
  }
  const std::size_t slash = text.find('/');
  const auto top = parse_number(text.substr(0, slash));
  const auto bottom = slash == text.npos ? 1.0 : parse_number(text.substr(slash + 1));
  if (!top || !bottom || !(*bottom > 0)) return std::nullopt;
  const double share = *top / *bottom;
  if (!(share >= 0 && share <= 1)) return std::nullopt;
  return When{.share = share};
}

}  // namespace headgate::loadtest
