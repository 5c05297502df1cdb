#include "policies/base/nearest.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace headgate {
namespace {

constexpr std::size_t name_bytes_max = 64;
constexpr std::size_t names_listed_max = 12;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same(char a, char b) { return lower(a) == lower(b); }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  if (a.size() > name_bytes_max || b.size() > name_bytes_max) return std::numeric_limits<std::size_t>::max();
  using Row = std::array<std::size_t, name_bytes_max + 1>;
  Row two_up{}, up{}, row{};
  for (std::size_t j = 0; j <= b.size(); ++j) up[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({up[j] + 1, row[j - 1] + 1, up[j - 1] + (same(a[i - 1], b[j - 1]) ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], two_up[j - 2] + 1);
    }
    two_up = up;
    up = row;
  }
  return up[b.size()];
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> known) {
  const std::string* best = nullptr;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    const std::size_t allowed = std::max(name.size(), candidate.size()) / 3;
    if (distance > std::max<std::size_t>(allowed, 1) || distance >= best_distance) continue;
    if (distance >= std::min(name.size(), candidate.size())) continue;  // nothing in common
    best = &candidate;
    best_distance = distance;
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

std::string suggestion(std::string_view name, std::span<const std::string> known) {
  if (const auto near = nearest(name, known)) return "; did you mean \"" + *near + "\"?";
  if (known.empty()) return {};
  std::string list = "; known here: ";
  for (std::size_t i = 0; i < known.size() && i < names_listed_max; ++i) list += (i == 0 ? "" : ", ") + known[i];
  if (known.size() > names_listed_max) list += " and " + std::to_string(known.size() - names_listed_max) + " more";
  return list;
}

}  // namespace headgate
