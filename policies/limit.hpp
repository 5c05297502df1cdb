// Static limit of attempts in flight per endpoint, counted at the choice: what is chosen is taken before the next
// choice is made, so that a burst never reads the same idle picture twice. Lowering a limit stops no attempt; nothing
// new starts until enough have ended.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

namespace headgate::policies {

class InFlight {
 public:
  struct Load {
    std::uint32_t in_flight = 0, limit = 0;
    bool free() const { return in_flight < limit; }
    template <class A>
    void image(A& a) {
      a(in_flight, limit);
    }
  };

  void grow(std::size_t endpoints) {
    if (loads_.size() < endpoints) loads_.resize(endpoints);
  }
  void set_limit(std::uint32_t endpoint, std::uint32_t limit) { loads_[endpoint].limit = limit; }
  const Load& operator[](std::uint32_t endpoint) const { return loads_[endpoint]; }

  // True: that was the last free unit.
  bool take(std::uint32_t endpoint) {
    Load& load = loads_[endpoint];
    assert(load.free());
    ++load.in_flight;
    return !load.free();
  }
  // True: a unit is free that was not before.
  bool give_back(std::uint32_t endpoint) {
    Load& load = loads_[endpoint];
    assert(load.in_flight > 0);
    const bool was_full = !load.free();
    --load.in_flight;
    return was_full && load.free();
  }
  template <class A>
  void image(A& a) {
    a(loads_);
  }

 private:
  std::vector<Load> loads_;
};

}  // namespace headgate::policies
