#include "loadtest/slo.hpp"

#include "config/units.hpp"

namespace headgate::loadtest {

std::optional<Slo> parse_slo(std::string_view text, std::string& problem) {
  Slo slo;
  slo.text = text;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(part.size() == text.size() ? part.size() : part.size() + 1);
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    std::optional<Nanos>* limit = name == "ttft"   ? &slo.ttft
                                  : name == "tpot" ? &slo.tpot
                                  : name == "gap"  ? &slo.gap
                                  : name == "e2e"  ? &slo.e2e
                                                   : nullptr;
    if (limit == nullptr || equals == part.npos) {
      problem = "slo: \"" + std::string{part} + "\" is not one of ttft=, tpot=, gap=, e2e= with a duration";
      return std::nullopt;
    }
    if (limit->has_value()) {
      problem = "slo: " + std::string{name} + " is given twice";
      return std::nullopt;
    }
    *limit = config::parse_duration(part.substr(equals + 1)).value;
    if (!limit->has_value()) {
      problem = "slo: " + std::string{name} + " is \"" + std::string{part.substr(equals + 1)} +
                "\"; a duration such as 800ms or 1s is wanted";
      return std::nullopt;
    }
  }
  return slo;
}

}  // namespace headgate::loadtest
