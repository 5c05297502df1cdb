// A pairing heap over places of a table of links (Fredman, Sedgewick, Sleator and Tarjan, 1986): pushing is constant
// time, taking out any place logarithmic, both amortised; nothing is allocated. A heap is the place of its root.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace headgate::policies {

// What a place of the table has in a list (previous, next) or in a heap (child too).
struct Link {
  static constexpr std::uint32_t none = ~0u;
  std::uint32_t previous = none;  // in a heap: the sibling before it, of a first child its parent
  std::uint32_t next = none;
  std::uint32_t child = none;
  template <class A>
  void image(A& a) {
    a(previous, next, child);
  }
};

// `before(a, b)`: place a is taken before place b; a strict total order that does not change while both are in.
template <class Before>
class PairingHeap {
 public:
  PairingHeap(std::vector<Link>& links, Before before) : links_(links), before_(before) {}

  std::uint32_t push(std::uint32_t root, std::uint32_t place) {
    links_[place] = Link{};
    return root == Link::none ? place : meld(root, place);
  }

  std::uint32_t take_out(std::uint32_t root, std::uint32_t place) {
    const Link out = links_[place];
    const std::uint32_t below = meld_all(out.child);
    if (place == root) return below;
    std::uint32_t& to_it = links_[out.previous].child == place ? links_[out.previous].child : links_[out.previous].next;
    to_it = out.next;
    if (out.next != Link::none) links_[out.next].previous = out.previous;
    return below == Link::none ? root : meld(root, below);
  }

 private:
  // Of two roots.
  std::uint32_t meld(std::uint32_t a, std::uint32_t b) {
    if (before_(b, a)) std::swap(a, b);
    links_[b].previous = a;
    links_[b].next = links_[a].child;
    if (links_[a].child != Link::none) links_[links_[a].child].previous = b;
    links_[a].child = b;
    return a;
  }

  // Siblings into one: in pairs from the left, then the pairs from the right.
  std::uint32_t meld_all(std::uint32_t first) {
    std::uint32_t pairs = Link::none;
    while (first != Link::none) {
      const std::uint32_t a = first, b = links_[a].next;
      first = b == Link::none ? b : links_[b].next;
      alone(a);
      if (b != Link::none) alone(b);
      const std::uint32_t pair = b == Link::none ? a : meld(a, b);
      links_[pair].next = pairs;
      pairs = pair;
    }
    std::uint32_t root = Link::none;
    while (pairs != Link::none) {
      const std::uint32_t pair = pairs;
      pairs = links_[pair].next;
      alone(pair);
      root = root == Link::none ? pair : meld(root, pair);
    }
    return root;
  }

  void alone(std::uint32_t place) { links_[place].previous = links_[place].next = Link::none; }

  std::vector<Link>& links_;
  Before before_;
};

}  // namespace headgate::policies
