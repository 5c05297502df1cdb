// Requests that wait: one ticket each, linked into the queue of every pool its route allows now; whoever serves it
// first unlinks it from all. A queue has lanes, each first in first out, served in this order: evacuees of a
// dead endpoint, retries, new requests, and repeats: what the callers' SDKs send again after a refusal. Repeats are
// served when nobody else waits: under overload each would take the place of a request that is still in time. Linking
// and unlinking are constant time and allocate nothing once the table has grown: the links live in a table of their
// own, `pools_max` per request slot. Bounds (admits) hold for new requests, whom repeats do not count against, and for
// repeats, whom everybody counts against; retries were admitted once and are bounded by what is in flight.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "policies/plan.hpp"

namespace headgate::policies {

enum class Lane : std::uint8_t { evacuees, retries, fresh, repeats };

inline constexpr std::array lanes{Lane::evacuees, Lane::retries, Lane::fresh, Lane::repeats};

// Nothing of it has been tried yet.
constexpr bool is_new(Lane lane) { return lane >= Lane::fresh; }

inline constexpr std::uint32_t pools_max = 8;  // of a route

class Tickets;

class PoolQueue {
 public:
  std::uint32_t queued() const { return queued_; }
  std::uint64_t bytes() const { return bytes_; }
  // Those served before a new ticket of that lane: all but the repeats, and for a repeat these too.
  std::uint32_t ahead_of(Lane lane) const { return queued_ - (lane == Lane::repeats ? 0 : of(Lane::repeats).queued); }
  std::uint64_t bytes_ahead_of(Lane lane) const {
    return bytes_ - (lane == Lane::repeats ? 0 : of(Lane::repeats).bytes);
  }
  bool admits(const QueueOptions& options, Lane lane, std::uint64_t bytes) const {
    return ahead_of(lane) < options.requests_max && bytes_ahead_of(lane) + bytes <= options.bytes_max;
  }
  template <class A>
  void image(A& a) {
    a(lanes_, queued_, bytes_);
  }

 private:
  friend class Tickets;
  static constexpr std::uint32_t none = ~0u;
  struct Ends {
    std::uint32_t first = none, last = none, queued = 0;
    std::uint64_t bytes = 0;
    template <class A>
    void image(A& a) {
      a(first, last, queued, bytes);
    }
  };
  const Ends& of(Lane lane) const { return lanes_[static_cast<std::size_t>(lane)]; }

  std::array<Ends, lanes.size()> lanes_;
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
