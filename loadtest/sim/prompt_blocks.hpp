// What a trace says of the text of a prompt, in the engine's terms.
#pragma once

#include <vector>

#include "backends/engine/block_pool.hpp"
#include "loadtest/trace.hpp"
#include "policies/base/random.hpp"

namespace headgate::loadtest {

// The prompt's full blocks: with hash ids each belongs to the id it ends in; without them, none may be shared.
inline std::vector<engine::TextHash> prompt_blocks(const Planned& planned, std::uint32_t block_tokens) {
  std::vector<engine::TextHash> blocks;
  if (planned.prefix.empty()) return blocks;
  blocks.reserve(planned.input / block_tokens);
  for (std::uint32_t end = block_tokens; end <= planned.input; end += block_tokens)
    blocks.push_back(draw(1, planned.prefix[(end - 1) / prefix_block_tokens], end));
  return blocks;
}

}  // namespace headgate::loadtest
