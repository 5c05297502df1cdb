// Small integer keys, each with at most one rank, least rank first: a binary heap that knows where each key stands, so
// that setting, moving or clearing one is O(log n) and nothing stale stays behind. Ties go in order of key, so that
// runs replay.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/base/time.hpp"

namespace headgate::policies {

template <class Rank>  // Time or std::int64_t
class Ranking {
 public:
  void set(std::uint32_t key, Rank rank);
  void clear(std::uint32_t key);

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  // Of one that is not empty.
  Rank first_rank() const { return heap_.front().rank; }
  std::uint32_t first_key() const { return heap_.front().key; }
  template <class A>
  void image(A& a) {
    a(heap_, places_);
  }

 private:
  struct Entry {
    Rank rank{};
    std::uint32_t key = 0;
    template <class A>
    void image(A& a) {
      a(rank, key);
    }
    bool before(const Entry& other) const { return rank != other.rank ? rank < other.rank : key < other.key; }
  };
  static constexpr std::uint32_t nowhere = ~0u;

  void put(std::size_t place, const Entry& entry);
  void rise(std::size_t place, const Entry& entry);
  void sink(std::size_t place, const Entry& entry);

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> places_;  // by key: where in the heap
};

extern template class Ranking<Time>;
extern template class Ranking<std::int64_t>;

}  // namespace headgate::policies
