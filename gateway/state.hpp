// GET /admin/state: what the gateway holds now, as JSON for people and scripts. Shows addresses (admin only), never
// keys. A backend's figures are those of its endpoint: two backends at one address show the same ones.
#pragma once

#include <string>
#include <string_view>

#include "config/catalog.hpp"
#include "gateway/name_book.hpp"
#include "policies/dispatcher.hpp"

namespace headgate::gateway {

struct StateView {
  const policies::Snapshot& snapshot;
  const config::Catalog& catalog;
  const NameBook& names;
  Time now{};  // on the Dispatcher's scale
  Nanos uptime{0};
  bool draining = false;
  std::uint64_t reloads_failed = 0;
  std::string_view last_problem;  // of the last reload that failed; empty: none
};

std::string render_state(const StateView& view);
std::string_view name_of(policies::HealthState health);

}  // namespace headgate::gateway
