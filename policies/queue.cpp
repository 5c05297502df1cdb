#include "policies/queue.hpp"

namespace headgate::policies {

void Tickets::link(PoolQueue& queue, std::uint32_t slot, std::uint32_t link, Lane lane, std::uint64_t bytes) {
  const std::uint32_t place = slot * pools_max + link;
  PoolQueue::Ends& ends = queue.lanes_[static_cast<std::size_t>(lane)];
  links_[place] = {ends.last, none};
  if (ends.last == none) {
    ends.first = place;
  } else {
    links_[ends.last].next = place;
  }
  ends.last = place;
  ++ends.queued;
  ends.bytes += bytes;
  ++queue.queued_;
  queue.bytes_ += bytes;
}

void Tickets::unlink(PoolQueue& queue, std::uint32_t slot, std::uint32_t link, Lane lane, std::uint64_t bytes) {
  const std::uint32_t place = slot * pools_max + link;
  PoolQueue::Ends& ends = queue.lanes_[static_cast<std::size_t>(lane)];
  const Link gone = links_[place];
  (gone.previous == none ? ends.first : links_[gone.previous].next) = gone.next;
  (gone.next == none ? ends.last : links_[gone.next].previous) = gone.previous;
  --ends.queued;
  ends.bytes -= bytes;
  --queue.queued_;
  queue.bytes_ -= bytes;
}

}  // namespace headgate::policies
