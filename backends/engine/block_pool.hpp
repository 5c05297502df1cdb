// The KV memory of one replica in blocks of equal size, with a prefix cache: full blocks may carry the hash of all the
// text up to their end, and a block nobody holds keeps its contents until its place is needed (least recently freed
// first). Automatic prefix caching as in vLLM (Kwon et al., "Efficient Memory Management for Large Language Model
// Serving with PagedAttention", SOSP 2023, and vLLM's design notes on it).
//
//   const std::optional<BlockId> hit = pool.share(hash);   // a block with that text, held once more
//   const BlockId own = pool.take();                       // needs available() > 0
//   pool.label(own, hash);                                 // it is full now; others may share it
//   pool.give(own);                                        // once for each share() and take()
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace headgate::engine {

using BlockId = std::uint32_t;
using TextHash = std::uint64_t;

class BlockPool {
 public:
  explicit BlockPool(std::uint32_t blocks) : size_(blocks) {}

  std::uint32_t size() const { return size_; }
  // Held by nobody, cached ones too.
  std::uint32_t available() const { return given_back_ + size_ - static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t held() const { return size_ - available(); }
  std::uint32_t cached() const { return static_cast<std::uint32_t>(by_hash_.size()); }  // labelled, held or not

  std::optional<BlockId> share(TextHash hash);
  BlockId take();
  void label(BlockId block, TextHash hash);  // does nothing if another block has it already
  void give(BlockId block);
  void forget();  // the cache; blocks that are held stay held, without label

 private:
  static constexpr BlockId nil = 0xffffffffu;
  struct Block {
    std::uint32_t holders = 0;
    BlockId before = nil, behind = nil;  // among those given back
    bool labelled = false;
    TextHash hash = 0;
  };
  void append(BlockId block);
  void prepend(BlockId block);
  void unlink(BlockId block);
  void unlabel(BlockId block);

  std::uint32_t size_;
  std::vector<Block> blocks_;  // that were ever used: a fleet of thousands costs only what it needs
  std::unordered_map<TextHash, BlockId> by_hash_;
  BlockId first_ = nil, last_ = nil;  // of those given back; taken from the front
  std::uint32_t given_back_ = 0;
};

}  // namespace headgate::engine
