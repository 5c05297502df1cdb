// Requests that wait: one ticket each, linked into the queue of every pool its route allows now; whoever serves it
// first unlinks it from all. A queue has three lanes, each first in first out, served in this order: evacuees of a
// dead endpoint, retries, new requests. Linking and unlinking are constant time and allocate nothing once the table
// has grown: the links live in a table of their own, `pools_max` per request slot.
// Bounds (admits) hold for new requests; retries were admitted once and are bounded by what is in flight.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "policies/plan.hpp"

namespace headgate::policies {

enum class Lane : std::uint8_t { evacuees, retries, fresh };

inline constexpr std::uint32_t pools_max = 8;  // of a route

class Tickets;

class PoolQueue {
 public:
  std::uint32_t queued() const { return queued_; }
  std::uint64_t bytes() const { return bytes_; }
  bool admits(const QueueOptions& options, std::uint64_t bytes) const {
    return queued_ < options.requests_max && bytes_ + bytes <= options.bytes_max;
  }
  bool lane_empty(Lane lane) const { return lanes_[static_cast<std::size_t>(lane)].first == none; }
  template <class A>
  void image(A& a) {
    a(lanes_, queued_, bytes_);
  }

 private:
  friend class Tickets;
  static constexpr std::uint32_t none = ~0u;
  struct Ends {
    std::uint32_t first = none, last = none;
    template <class A>
    void image(A& a) {
      a(first, last);
    }
  };
  std::array<Ends, 3> lanes_;
  std::uint32_t queued_ = 0;
  std::uint64_t bytes_ = 0;
};

// A place in a queue: the slot of its request and which of its links.
class Tickets {
 public:
  void grow(std::size_t slots) {
    if (links_.size() < slots * pools_max) links_.resize(slots * pools_max);
  }

  // `link` below pools_max and not in use.
  void link(PoolQueue& queue, std::uint32_t slot, std::uint32_t link, Lane lane, std::uint64_t bytes);
  void unlink(PoolQueue& queue, std::uint32_t slot, std::uint32_t link, Lane lane, std::uint64_t bytes);

  // Walks a lane from its head; `none` ends it. A place stays valid while its ticket is linked.
  static constexpr std::uint32_t none = PoolQueue::none;
  static std::uint32_t first(const PoolQueue& queue, Lane lane) {
    return queue.lanes_[static_cast<std::size_t>(lane)].first;
  }
  std::uint32_t next(std::uint32_t place) const { return links_[place].next; }
  static std::uint32_t slot_of(std::uint32_t place) { return place / pools_max; }
  template <class A>
  void image(A& a) {
    a(links_);
  }

 private:
  struct Link {
    std::uint32_t previous = none, next = none;
    template <class A>
    void image(A& a) {
      a(previous, next);
    }
  };
  std::vector<Link> links_;
};

}  // namespace headgate::policies
