// Which members of a pool could take a request now: one bit each, walked in order of position, so that finding one
// among a thousand costs a few words and a pool without any is known at once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headgate::policies::routing {

class OpenSet {
 public:
  static constexpr std::uint32_t none = ~0u;

  void reset(std::size_t members) {
    words_.assign((members + 63) / 64, 0);
    count_ = 0;
  }
  void set(std::uint32_t position, bool open) {
    std::uint64_t& word = words_[position / 64];
    const std::uint64_t bit = std::uint64_t{1} << (position % 64);
    if (((word & bit) != 0) == open) return;
    word ^= bit;
    open ? ++count_ : --count_;
  }
  bool has(std::uint32_t position) const { return (words_[position / 64] >> (position % 64) & 1) != 0; }
  std::uint32_t count() const { return count_; }

  // The first open position at or after `from`; none if there is none.
  std::uint32_t next(std::uint32_t from) const {
    std::size_t at = from / 64;
    if (at >= words_.size()) return none;
    std::uint64_t word = words_[at] & (~std::uint64_t{0} << (from % 64));
    while (word == 0) {
      if (++at == words_.size()) return none;
      word = words_[at];
    }
    return static_cast<std::uint32_t>(at * 64) + static_cast<std::uint32_t>(std::countr_zero(word));
  }
  // The same, going round.
  std::uint32_t next_round(std::uint32_t from) const {
    const std::uint32_t found = next(from);
    return found != none || from == 0 ? found : next(0);
  }

  template <class A>
  void image(A& a) {
    a(words_, count_);
  }
  template <class Visit>
  void each(Visit&& visit) const {
    for (std::size_t at = 0; at < words_.size(); ++at) {
      for (std::uint64_t word = words_[at]; word != 0; word &= word - 1) {
        visit(static_cast<std::uint32_t>(at * 64) + static_cast<std::uint32_t>(std::countr_zero(word)));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
  std::uint32_t count_ = 0;
};

}  // namespace headgate::policies::routing
