#include "policies/queue.hpp"

namespace headgate::policies {

std::uint64_t ceiling(Class klass, std::uint64_t bound) {
  constexpr std::array<std::uint64_t, classes_n> percent{100, 95, 85, 70};
  const std::uint64_t of = percent[static_cast<std::size_t>(klass)];
  return bound / 100 * of + (bound % 100 * of + 99) / 100;
}

void Tickets::all(const PoolQueue& queue, Lane lane, std::vector<std::uint32_t>& places) const {
  if (lane == Lane::fresh) return queue.fair_.all(table_, places);
  for (std::uint32_t at = first(queue, lane); at != none; at = next(lane, at)) places.push_back(at);
}

void Tickets::link(PoolQueue& queue, std::uint32_t slot, std::uint32_t link, Lane lane, std::uint64_t bytes) {
  const std::uint32_t place = slot * pools_max + link;
  PoolQueue::Ends& ends = queue.lanes_[static_cast<std::size_t>(lane)];
  if (lane == Lane::fresh) {
    queue.fair_.push(table_, place);
  } else {
    table_.links[place] = {ends.last, none, none};
    (ends.last == none ? ends.first : table_.links[ends.last].next) = place;
    ends.last = place;
  }
  ++ends.queued;
  ends.bytes += bytes;
  ++queue.queued_;
  queue.bytes_ += bytes;
}

void Tickets::unlink(PoolQueue& queue, std::uint32_t slot, std::uint32_t link, Lane lane, std::uint64_t bytes) {
  const std::uint32_t place = slot * pools_max + link;
  PoolQueue::Ends& ends = queue.lanes_[static_cast<std::size_t>(lane)];
  if (lane == Lane::fresh) {
    queue.fair_.take_out(table_, place);
  } else {
    const Link gone = table_.links[place];
    (gone.previous == none ? ends.first : table_.links[gone.previous].next) = gone.next;
    (gone.next == none ? ends.last : table_.links[gone.next].previous) = gone.previous;
  }
  --ends.queued;
  ends.bytes -= bytes;
  --queue.queued_;
  queue.bytes_ -= bytes;
}

}  // namespace headgate::policies
