#include "backends/engine/block_pool.hpp"

namespace headgate::engine {

std::optional<BlockId> BlockPool::share(TextHash hash) {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) return std::nullopt;
  if (blocks_[found->second].holders++ == 0) unlink(found->second);
  return found->second;
}

// One that cannot be shared, else one that was never used, else the one that was given back longest ago.
BlockId BlockPool::take() {
  const bool forgets = first_ == nil || blocks_[first_].labelled;
  if (forgets && blocks_.size() < size_) {
    blocks_.emplace_back().holders = 1;
    return static_cast<BlockId>(blocks_.size() - 1);
  }
  const BlockId block = first_;
  unlink(block);
  unlabel(block);
  blocks_[block].holders = 1;
  return block;
}

void BlockPool::label(BlockId block, TextHash hash) {
  if (blocks_[block].labelled || !by_hash_.try_emplace(hash, block).second) return;
  blocks_[block].labelled = true;
  blocks_[block].hash = hash;
}

// What cannot be shared is taken before what can.
void BlockPool::give(BlockId block) {
  if (--blocks_[block].holders > 0) return;
  blocks_[block].labelled ? append(block) : prepend(block);
}

void BlockPool::forget() {
  by_hash_.clear();
  for (Block& block : blocks_) block.labelled = false;
}

void BlockPool::append(BlockId block) {
  blocks_[block].before = last_;
  blocks_[block].behind = nil;
  (last_ == nil ? first_ : blocks_[last_].behind) = block;
  last_ = block;
  ++given_back_;
}

void BlockPool::prepend(BlockId block) {
  blocks_[block].before = nil;
  blocks_[block].behind = first_;
  (first_ == nil ? last_ : blocks_[first_].before) = block;
  first_ = block;
  ++given_back_;
}

void BlockPool::unlink(BlockId block) {
  const Block& here = blocks_[block];
  (here.before == nil ? first_ : blocks_[here.before].behind) = here.behind;
  (here.behind == nil ? last_ : blocks_[here.behind].before) = here.before;
  --given_back_;
}

void BlockPool::unlabel(BlockId block) {
  if (!blocks_[block].labelled) return;
  by_hash_.erase(blocks_[block].hash);
  blocks_[block].labelled = false;
}

}  // namespace headgate::engine
