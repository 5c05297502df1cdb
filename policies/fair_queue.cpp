#include "policies/fair_queue.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "policies/base/random.hpp"

namespace headgate::policies {
namespace {

constexpr double share_tau_s = 10;
constexpr std::uint32_t forgotten_at_once = 2;  // more than one may come: the rest goes later

auto heap(FairQueue::Table& table) {
  const auto before = [&table](std::uint32_t a, std::uint32_t b) {
    const Turn &one = table.turns[a / pools_max], &other = table.turns[b / pools_max];
    return one.by != other.by ? one.by < other.by : one.number < other.number;
  };
  return PairingHeap(table.links, before);
}

}  // namespace

void FairQueue::configure(const ClassPlans& classes) {
  for (std::size_t i = 0; i < classes_n; ++i) {
    groups_[i].weight = classes[i].weight;
    groups_[i].floor = classes[i].floor;
  }
}

void FairQueue::push(Table& table, std::uint32_t place) {
  const Turn& turn = table.turns[place / pools_max];
  Group& into = group(turn.klass);
  if (into.queued++ == 0) {  // a class that begins to wait
    const Group* least = nullptr;
    for (const Group& other : groups_) {
      if (&other == &into || other.queued == 0) continue;
      if (least == nullptr || other.counter < least->counter) least = &other;
    }
    into.counter = std::max(into.counter, least == nullptr ? time_ : least->counter);
  }
  const std::uint32_t f = flow_of(turn);
  Flow& flow = flows_[f];
  if (flow.queued++ == 0) {
    flow.counter = std::max(flow.counter, into.waiting.empty() ? into.time : into.waiting.first_rank());
    flow.weight = turn.weight;
    into.weights += flow.weight;
    into.idle.clear(f);
    into.waiting.set(f, flow.counter);
  }
  flow.root = heap(table).push(flow.root, place);
}

void FairQueue::take_out(Table& table, std::uint32_t place) {
  const Turn& turn = table.turns[place / pools_max];
  const std::uint32_t f = find(turn.klass, turn.tenant);
  Flow& flow = flows_[f];
  Group& from = group(turn.klass);
  flow.root = heap(table).take_out(flow.root, place);
  --from.queued;
  if (--flow.queued == 0) {
    from.weights -= flow.weight;
    from.waiting.clear(f);
    from.idle.set(f, flow.counter);
  }
}

const FairQueue::Group* FairQueue::next_group() const {
  double served = 0;
  for (const Group& one : groups_) served += one.served;
  const Group* least = nullptr;
  const Group* starved = nullptr;
  double missing = 0;
  for (const Group& one : groups_) {
    if (one.queued == 0) continue;
    if (least == nullptr || one.counter < least->counter) least = &one;
    const double below = one.floor * served - one.served;
    if (below > missing) {
      missing = below;
      starved = &one;
    }
  }
  return starved != nullptr ? starved : least;
}

std::uint32_t FairQueue::first() const {
  const Group* const next = next_group();
  return next == nullptr ? none : flows_[next->waiting.first_key()].root;
}

void FairQueue::all(const Table& table, std::vector<std::uint32_t>& places) const {
  const auto begin = static_cast<std::ptrdiff_t>(places.size());
  for (const Flow& flow : flows_) {
    if (flow.serial != 0 && flow.queued > 0) places.push_back(flow.root);
  }
  for (auto at = static_cast<std::size_t>(begin); at < places.size(); ++at) {
    const Link& link = table.links[places[at]];
    if (link.child != none) places.push_back(link.child);
    if (link.next != none) places.push_back(link.next);
  }
  std::sort(places.begin() + begin, places.end(), [&table](std::uint32_t a, std::uint32_t b) {
    const Turn &one = table.turns[a / pools_max], &other = table.turns[b / pools_max];
    return std::tie(one.klass, one.by, one.number) < std::tie(other.klass, other.by, other.number);
  });
}

FairQueue::Charge FairQueue::charge(Time now, const Table& table, std::uint32_t place) {
  const Turn& turn = table.turns[place / pools_max];
  const double faded = std::exp(-std::chrono::duration<double>(now - last_charge_).count() / share_tau_s);
  last_charge_ = now;
  for (Group& one : groups_) one.served *= faded;
  const std::uint32_t f = find(turn.klass, turn.tenant);
  Group& served = group(turn.klass);
  served.served += turn.tokens;
  time_ = std::max(time_, served.counter);
  served.time = std::max(served.time, flows_[f].counter);
  const Charge charge{f, flows_[f].serial};
  correct(charge, turn, turn.tokens);
  // The last one: whoever comes next begins a new busy period, as in start-time fair queueing.
  if (served.queued == 1) served.time = std::max(served.time, flows_[f].counter);
  forget_idle(served);
  return charge;
}

void FairQueue::correct(Charge charge, const Turn& turn, std::int64_t tokens) {
  Group& of = group(turn.klass);
  of.counter += tokens * scale / of.weight;
  if (charge.flow == none || flows_[charge.flow].serial != charge.serial) return;
  flows_[charge.flow].counter += tokens * scale / flows_[charge.flow].weight;
  rank(of, charge.flow);
}

void FairQueue::rank(Group& of, std::uint32_t f) {
  (flows_[f].queued > 0 ? of.waiting : of.idle).set(f, flows_[f].counter);
}

std::uint32_t FairQueue::ahead(Class klass, std::uint32_t tenant, std::uint32_t weight) const {
  const Group& of = group(klass);
  const std::uint32_t f = find(klass, tenant);
  const std::uint64_t own = f == none ? 0 : flows_[f].queued;
  const std::uint64_t others = of.weights - (own > 0 ? flows_[f].weight : 0);
  // While one more of this tenant is served, each other one that waits has its turns by weight.
  const std::uint64_t turns = own + (own + 1) * others / weight;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(turns, of.queued));
}

double FairQueue::share(Class klass) const {
  const Group& own = group(klass);
  double weights = 0, floors = 0;
  for (const Group& one : groups_) {
    if (&one != &own && one.queued == 0) continue;
    weights += one.weight;
    floors += &one == &own ? 0 : one.floor;
  }
  return std::max(own.floor, std::min(own.weight / weights, 1 - floors));
}

// The index: open addressing with linear probing; what is taken out leaves no gap in a run.

std::size_t FairQueue::home(Class klass, std::uint32_t tenant) const {
  return mix64(std::uint64_t{tenant} << 8 | static_cast<std::uint64_t>(klass)) & (index_.size() - 1);
}

std::uint32_t FairQueue::find(Class klass, std::uint32_t tenant) const {
  if (index_.empty()) return none;
  for (std::size_t at = home(klass, tenant);; at = (at + 1) & (index_.size() - 1)) {
    const std::uint32_t f = index_[at];
    if (f == none || (flows_[f].tenant == tenant && flows_[f].klass == klass)) return f;
  }
}

void FairQueue::index_flow(std::uint32_t f) {
  std::size_t at = home(flows_[f].klass, flows_[f].tenant);
  while (index_[at] != none) at = (at + 1) & (index_.size() - 1);
  index_[at] = f;
}

std::uint32_t FairQueue::flow_of(const Turn& turn) {
  std::uint32_t f = find(turn.klass, turn.tenant);
  if (f != none) return f;
  if (free_ == none) {
    f = static_cast<std::uint32_t>(flows_.size());
    flows_.emplace_back();
  } else {
    f = free_;
    free_ = flows_[f].next_free;
  }
  flows_[f] = {.tenant = turn.tenant, .serial = ++serial_, .klass = turn.klass};
  if (std::size_t{2} * ++flows_n_ > index_.size()) {
    index_.assign(std::max<std::size_t>(16, 2 * index_.size()), none);
    for (std::uint32_t other = 0; other < flows_.size(); ++other) {
      if (flows_[other].serial != 0) index_flow(other);
    }
  } else {
    index_flow(f);
  }
  return f;
}

void FairQueue::forget(std::uint32_t f) {
  const std::size_t mask = index_.size() - 1;
  std::size_t gap = home(flows_[f].klass, flows_[f].tenant);
  while (index_[gap] != f) gap = (gap + 1) & mask;
  index_[gap] = none;
  for (std::size_t at = (gap + 1) & mask; index_[at] != none; at = (at + 1) & mask) {
    const std::size_t wanted = home(flows_[index_[at]].klass, flows_[index_[at]].tenant);
    if (((at - wanted) & mask) < ((at - gap) & mask)) continue;
    index_[gap] = index_[at];
    index_[at] = none;
    gap = at;
  }
  flows_[f].serial = 0;
  flows_[f].next_free = free_;
  free_ = f;
  --flows_n_;
}

// Those who would be lifted over their counter anyway.
void FairQueue::forget_idle(Group& of) {
  for (std::uint32_t n = 0; n < forgotten_at_once && !of.idle.empty() && of.idle.first_rank() <= of.time; ++n) {
    const std::uint32_t f = of.idle.first_key();
    of.idle.clear(f);
    forget(f);
  }
}

}  // namespace headgate::policies
