#include "loadtest/record.hpp"

namespace headgate::loadtest {

std::uint16_t Names::number(const std::string& name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  constexpr std::size_t names_max = 4096;
  if (names_.size() >= names_max) return number("(other)");
  names_.push_back(names_.size() + 1 == names_max ? "(other)" : name);
  const auto number = static_cast<std::uint16_t>(names_.size() - 1);
  numbers_.emplace(names_.back(), number);
  return number;
}

bool is_good(const Record& record, const Slo& slo) {
  if (record.outcome != Outcome::ok) return false;
  if (slo.e2e && record.e2e() > *slo.e2e) return false;
  if (!record.stream) return true;
  if (slo.ttft && record.ttft() > slo.ttft) return false;
  if (slo.tpot && record.tpot().value_or(Nanos{0}) > *slo.tpot) return false;
  return !slo.gap || record.gap_max <= *slo.gap;
}

}  // namespace headgate::loadtest
