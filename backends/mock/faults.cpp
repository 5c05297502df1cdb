#include "backends/mock/faults.hpp"

#include <algorithm>

#include "policies/base/random.hpp"

namespace headgate::mock {

void FaultSet::set(Fault fault) {
  const auto same = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& f) { return f.kind == fault.kind; });
  if (same == faults_.end()) {
    faults_.push_back(std::move(fault));
  } else {
    *same = std::move(fault);
  }
}

void FaultSet::clear(FaultKind kind) {
  std::erase_if(faults_, [kind](const Fault& f) { return f.kind == kind; });
}

bool FaultSet::has(FaultKind kind) const {
  return std::any_of(faults_.begin(), faults_.end(), [kind](const Fault& f) { return f.kind == kind; });
}

std::optional<Fault> FaultSet::pick(std::uint64_t request, bool health_check) {
  for (auto it = faults_.begin(); it != faults_.end(); ++it) {
    if (it->kind == FaultKind::refuse || it->kind == FaultKind::frozen_metrics || (health_check && !it->health))
      continue;
    if (it->share && unit(draw(seed_, request, static_cast<std::uint64_t>(it->kind))) >= *it->share) continue;
    if (!it->count) return *it;
    Fault hit = *it;
    if (--*it->count == 0) faults_.erase(it);
    return hit;
  }
  return std::nullopt;
}

}  // namespace headgate::mock
