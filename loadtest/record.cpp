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

namespace {

bool is_good_since(const Record& record, const Slo& slo, Nanos begin) {
  if (record.outcome != Outcome::ok) return false;
  if (slo.e2e && record.ended - begin > *slo.e2e) return false;
  if (!record.stream) return true;
  if (slo.ttft && record.first && *record.first - begin > *slo.ttft) return false;
  if (slo.tpot && record.tpot().value_or(Nanos{0}) > *slo.tpot) return false;
  return !slo.gap || record.gap_max <= *slo.gap;
}

}  // namespace

bool is_good(const Record& record, const Slo& slo) { return is_good_since(record, slo, record.intended); }

bool is_good_since_last_send(const Record& record, const Slo& slo) {
  return is_good_since(record, slo, record.intended + std::chrono::milliseconds(record.resent_after_ms));
}

}  // namespace headgate::loadtest
