// Requests that wait: one ticket each, linked into the queue of every pool its route allows now; whoever serves it
// first unlinks it from all. A queue has lanes, served in this order: evacuees of a dead endpoint and retries, each
// first in first out; new requests, by class, tenant and deadline (fair_queue.hpp); and repeats, first in first out:
// what the callers' SDKs send again after a refusal. Repeats are served when nobody else waits: under overload each
// would take the place of a request that is still in time. Linking and unlinking allocate nothing once the table has
// grown: the links live in a table of their own, `pools_max` per request slot. Bounds (admits) hold for new requests,
// whom repeats do not count against, and for repeats, whom everybody counts against; retries were admitted once and are
// bounded by what is in flight. A class may fill the queue up to its ceiling only, so that the classes above it find
// room: interactive all of it, standard 95 %, batch 85 %, sheddable 70 % (rounded up).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "policies/fair_queue.hpp"
#include "policies/plan.hpp"

namespace headgate::policies {

enum class Lane : std::uint8_t { evacuees, retries, fresh, repeats };

inline constexpr std::array lanes{Lane::evacuees, Lane::retries, Lane::fresh, Lane::repeats};

// Nothing of it has been tried yet.
constexpr bool is_new(Lane lane) { return lane >= Lane::fresh; }

// Of a queue's bounds, for that class.
std::uint64_t ceiling(Class klass, std::uint64_t bound);

class Tickets;

class PoolQueue {
 public:
  std::uint32_t queued() const { return queued_; }
  std::uint64_t bytes() const { return bytes_; }
  // Those who count against the bounds of a new ticket of that lane: all but the repeats, for a repeat these too.
  std::uint32_t counted(Lane lane) const { return queued_ - (lane == Lane::repeats ? 0 : of(Lane::repeats).queued); }
  std::uint64_t bytes_counted(Lane lane) const {
    return bytes_ - (lane == Lane::repeats ? 0 : of(Lane::repeats).bytes);
  }
  bool admits(const QueueOptions& options, Lane lane, Class klass, std::uint64_t bytes) const {
    return counted(lane) < ceiling(klass, options.requests_max) &&
           bytes_counted(lane) + bytes <= ceiling(klass, options.bytes_max);
  }
  // Those served before a new ticket, of its class or no class; a repeat comes after everybody.
  std::uint32_t ahead_of(Lane lane, Class klass, std::uint32_t tenant, std::uint32_t weight) const {
    if (lane == Lane::repeats) return queued_;
    return of(Lane::evacuees).queued + of(Lane::retries).queued + fair_.ahead(klass, tenant, weight);
  }
  FairQueue& fair() { return fair_; }
  const FairQueue& fair() const { return fair_; }
  template <class A>
  void image(A& a) {
    a(lanes_, fair_, queued_, bytes_);
  }

 private:
  friend class Tickets;
  static constexpr std::uint32_t none = Link::none;
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
  FairQueue fair_;
  std::uint32_t queued_ = 0;
  std::uint64_t bytes_ = 0;
};

// A place in a queue: the slot of its request and which of its links.
class Tickets {
 public:
  void grow(std::size_t slots) {
    if (table_.turns.size() >= slots) return;
    table_.links.resize(slots * pools_max);
    table_.turns.resize(slots);
  }
  // Before it is linked; of one that is linked it never changes.
  void set_turn(std::uint32_t slot, const Turn& turn) { table_.turns[slot] = turn; }
  const Turn& turn(std::uint32_t slot) const { return table_.turns[slot]; }

  // `link` below pools_max and not in use.
  void link(PoolQueue& queue, std::uint32_t slot, std::uint32_t link, Lane lane, std::uint64_t bytes);
  void unlink(PoolQueue& queue, std::uint32_t slot, std::uint32_t link, Lane lane, std::uint64_t bytes);

  // Appends every place of a lane.
  void all(const PoolQueue& queue, Lane lane, std::vector<std::uint32_t>& places) const;
  // Walks a lane from its head; `none` ends it. A place stays valid while its ticket is linked. Of the fresh lane, who
  // all may go anywhere, only the first is known.
  static constexpr std::uint32_t none = PoolQueue::none;
  static std::uint32_t first(const PoolQueue& queue, Lane lane) {
    return lane == Lane::fresh ? queue.fair_.first() : queue.of(lane).first;
  }
  std::uint32_t next(Lane lane, std::uint32_t place) const {
    return lane == Lane::fresh ? none : table_.links[place].next;
  }
  static std::uint32_t slot_of(std::uint32_t place) { return place / pools_max; }
  // It is served from there now.
  FairQueue::Charge charge(Time now, PoolQueue& queue, std::uint32_t place) {
    return queue.fair_.charge(now, table_, place);
  }
  template <class A>
  void image(A& a) {
    a(table_);
  }

 private:
  FairQueue::Table table_;
};

}  // namespace headgate::policies
