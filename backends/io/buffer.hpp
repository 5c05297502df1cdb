// Flat byte buffers, pooled per worker (last in, first out). A Buffer holds the bytes [begin, end) of its block and has
// padding readable bytes behind its capacity for scanners that read ahead. Blocks of the pooled size go back to the
// pool, larger ones to the allocator.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace headgate::backends {

class BufferPool {
 public:
  static constexpr std::size_t block_bytes = 32 << 10;
  static constexpr std::size_t padding = 64;
  static constexpr std::size_t idle_max = 1024;  // blocks kept; more go back to the allocator

  using Block = std::unique_ptr<char[]>;
  Block take() {
    if (free_.empty()) return Block(new char[block_bytes + padding]);
    Block block = std::move(free_.back());
    free_.pop_back();
    return block;
  }
  void give(Block block) {
    if (free_.size() < idle_max) free_.push_back(std::move(block));
  }

 private:
  std::vector<Block> free_;
};

class Buffer {
 public:
  explicit Buffer(BufferPool& pool) : pool_(&pool) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() { release(); }

  bool empty() const { return begin_ == end_; }
  std::size_t size() const { return end_ - begin_; }
  std::size_t capacity() const { return capacity_; }
  std::string_view view() const { return {block_.get() + begin_, size()}; }
  char* data() { return block_.get() + begin_; }

  // Room behind end. After reserve(n) it is at least n; views into the buffer are then invalid.
  char* tail() { return block_.get() + end_; }
  std::size_t room() const { return capacity_ - end_; }
  void reserve(std::size_t n) {
    if (room() >= n) return;
    if (block_ && capacity_ - size() >= n) {
      std::memmove(block_.get(), data(), size());
    } else {
      grow(size() + n);
    }
    end_ = size();
    begin_ = 0;
  }

  void commit(std::size_t n) { end_ += n; }
  void consume(std::size_t n) { begin_ += n; }
  // Drop the bytes [from, to), counted from begin; later ones move down.
  void erase(std::size_t from, std::size_t to) {
    std::memmove(data() + from, data() + to, size() - to);
    end_ -= to - from;
  }
  void clear() { begin_ = end_ = 0; }
  // Give the block back; the buffer is empty afterwards.
  void release() {
    if (block_ && capacity_ == BufferPool::block_bytes) pool_->give(std::move(block_));
    block_.reset();
    capacity_ = begin_ = end_ = 0;
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(block_, other.block_);
    std::swap(capacity_, other.capacity_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }
  void grow(std::size_t least) {
    const std::size_t want = least <= BufferPool::block_bytes ? BufferPool::block_bytes : least;
    BufferPool::Block block =
        want == BufferPool::block_bytes ? pool_->take() : BufferPool::Block(new char[want + BufferPool::padding]);
    if (block_) std::memcpy(block.get(), data(), size());
    if (block_ && capacity_ == BufferPool::block_bytes) pool_->give(std::move(block_));
    block_ = std::move(block);
    capacity_ = want;
  }

  BufferPool* pool_ = nullptr;
  BufferPool::Block block_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace headgate::backends
