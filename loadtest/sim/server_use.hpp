// How a model server was used, from its engine's counts.
#pragma once

#include <string>

#include "backends/engine/engine.hpp"
#include "config/options.hpp"
#include "loadtest/runner.hpp"

namespace headgate::loadtest {

inline ServerUse server_use(std::string name, const engine::EngineCounts& counts, std::uint32_t blocks,
                            const config::PriceOptions& price, Nanos run) {
  const auto part = [](auto some, auto all) {
    return all == 0 ? 0.0 : static_cast<double>(some) / static_cast<double>(all);
  };
  return {.name = std::move(name),
          .busy = part(counts.busy.count(), run.count()),
          .batch = part(counts.in_batches, counts.steps),
          .kv_held = part(counts.held_blocks, counts.steps * blocks),
          .cost_usd = (price.input * static_cast<double>(counts.prompt_tokens - counts.cached_tokens) +
                       price.cached * static_cast<double>(counts.cached_tokens) +
                       price.output * static_cast<double>(counts.output_tokens)) /
                      1e6,
          .prompt_tokens = counts.prompt_tokens,
          .cached_tokens = counts.cached_tokens,
          .output_tokens = counts.output_tokens,
          .preemptions = counts.preemptions};
}

}  // namespace headgate::loadtest
