#include "policies/ranking.hpp"

namespace headgate::policies {

template <class Rank>
void Ranking<Rank>::put(std::size_t place, const Entry& entry) {
  heap_[place] = entry;
  places_[entry.key] = static_cast<std::uint32_t>(place);
}

template <class Rank>
void Ranking<Rank>::rise(std::size_t place, const Entry& entry) {
  while (place > 0) {
    const std::size_t parent = (place - 1) / 2;
    if (!entry.before(heap_[parent])) break;
    put(place, heap_[parent]);
    place = parent;
  }
  put(place, entry);
}

template <class Rank>
void Ranking<Rank>::sink(std::size_t place, const Entry& entry) {
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
    if (!heap_[child].before(entry)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, entry);
}

template <class Rank>
void Ranking<Rank>::set(std::uint32_t key, Rank rank) {
  if (key >= places_.size()) places_.resize(key + 1, nowhere);
  const Entry entry{rank, key};
  const std::uint32_t place = places_[key];
  if (place == nowhere) {
    heap_.push_back(entry);
    rise(heap_.size() - 1, entry);
  } else if (entry.before(heap_[place])) {
    rise(place, entry);
  } else {
    sink(place, entry);
  }
}

template <class Rank>
void Ranking<Rank>::clear(std::uint32_t key) {
  if (key >= places_.size() || places_[key] == nowhere) return;
  const std::size_t place = places_[key];
  places_[key] = nowhere;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (last.key == key) return;
  if (place > 0 && last.before(heap_[(place - 1) / 2])) {
    rise(place, last);
  } else {
    sink(place, last);
  }
}

template class Ranking<Time>;
template class Ranking<std::int64_t>;

}  // namespace headgate::policies
