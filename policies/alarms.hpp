// At most one alarm per small integer key, soonest first: a binary heap that knows where each key stands, so that
// moving or clearing one is O(log n) and nothing stale stays behind. Ties ring in order of key, so that runs replay.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/base/time.hpp"

namespace headgate::policies {

class Alarms {
 public:
  // `at` never clears it.
  void set(std::uint32_t key, Time at);
  void clear(std::uint32_t key);

  bool empty() const { return heap_.empty(); }
  Time soonest() const { return heap_.empty() ? never : heap_.front().at; }
  std::uint32_t soonest_key() const { return heap_.front().key; }
  std::size_t size() const { return heap_.size(); }
  template <class A>
  void image(A& a) {
    a(heap_, places_);
  }

 private:
  struct Entry {
    Time at;
    std::uint32_t key;
    template <class A>
    void image(A& a) {
      a(at, key);
    }
    bool before(const Entry& other) const { return at != other.at ? at < other.at : key < other.key; }
  };
  static constexpr std::uint32_t nowhere = ~0u;

  void put(std::size_t place, const Entry& entry);
  void rise(std::size_t place, const Entry& entry);
  void sink(std::size_t place, const Entry& entry);

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> places_;  // by key: where in the heap
};

}  // namespace headgate::policies
