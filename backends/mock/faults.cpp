#include "backends/mock/faults.hpp"

#include <algorithm>
#include <array>

#include "policies/base/random.hpp"

namespace headgate::mock {

std::string_view name_of(FaultKind kind) {
  constexpr std::array<std::string_view, 8> names{"refuse",        "hang",  "slow_head", "status",
                                                  "in_band_error", "reset", "no_done",   "stall"};
  return names[static_cast<std::size_t>(kind)];
}

void FaultPlan::set(Fault fault) {
  const auto same = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& f) { return f.kind == fault.kind; });
  if (same == faults_.end()) {
    faults_.push_back(std::move(fault));
  } else {
    *same = std::move(fault);
  }
}

bool FaultPlan::refusing() const {
  return std::any_of(faults_.begin(), faults_.end(), [](const Fault& f) { return f.kind == FaultKind::refuse; });
}

std::optional<Fault> FaultPlan::pick(std::uint64_t request, bool health_check) {
  for (auto it = faults_.begin(); it != faults_.end(); ++it) {
    if (it->kind == FaultKind::refuse || (health_check && !it->health)) continue;
    if (it->share && unit(draw(seed_, request, static_cast<std::uint64_t>(it->kind))) >= *it->share) continue;
    if (!it->count) return *it;
    Fault hit = *it;
    if (--*it->count == 0) faults_.erase(it);
    return hit;
  }
  return std::nullopt;
}

}  // namespace headgate::mock
