// Whose request is served next, of the new ones that wait for one pool. Three questions, one after the other:
//   class    of those who wait, one whose share of the tokens served lately (tau 10 s) is below its floor, the furthest
//            below first; else the one that has had the fewest tokens per weight. Ties: the higher class.
//   tenant   inside a class: the one that has had the fewest tokens per weight (virtual token counter; Sheng et al.,
//            Fairness in Serving Large Language Models, OSDI 2024). Ties: always the same way.
//   request  inside a tenant: the earliest `by`, then the first come.
// A request costs prompt + 2 * expected output tokens, charged when it is served and corrected when it has ended (both
// for its class and its tenant). Who begins to wait after a pause is lifted to the least counter of those who wait, so
// that nobody saves up; two tenants who wait all along differ in tokens per weight by at most twice the dearest request
// and what is expected wrongly of those in flight. The classes' counters are the same rule once more, in place of
// deficit round robin: it needs no quantum and is as fair.
// A tenant's counter (a flow) is kept as long as it says something: while it waits, and until those who wait have had
// as much as it has; when nobody waits any more, everybody begins anew. Constant time but for O(log n) of the heaps;
// tables grow to the load and stay.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "policies/base/time.hpp"
#include "policies/pairing_heap.hpp"
#include "policies/plan.hpp"
#include "policies/ranking.hpp"

namespace headgate::policies {

// What the order depends on; one per request, in all queues it waits in.
struct Turn {
  Time by = never;
  std::uint64_t number = 0;  // of coming
  Class klass = Class::interactive;
  std::uint32_t tenant = 0, weight = 1;  // of the tenant
  std::uint32_t tokens = 0;              // prompt + 2 * expected output
  template <class A>
  void image(A& a) {
    a(by, number, klass, tenant, weight, tokens);
  }
};

class FairQueue {
 public:
  static constexpr std::uint32_t none = Link::none;

  // Who was charged, and for what: to correct it when the answer has ended.
  struct Charge {
    std::uint32_t flow = none, serial = 0;
    template <class A>
    void image(A& a) {
      a(flow, serial);
    }
  };

  // What the queues of all pools share: links by place, turns by slot (a place is slot * pools_max + n), so that a heap
  // may compare.
  struct Table {
    std::vector<Link> links;
    std::vector<Turn> turns;
    template <class A>
    void image(A& a) {
      a(links, turns);
    }
  };

  void configure(const ClassPlans& classes);

  void push(Table& table, std::uint32_t place);
  void take_out(Table& table, std::uint32_t place);
  // The place to serve next; none when nobody waits.
  std::uint32_t first() const;
  // Appends every place, by class, then as a tenant's requests are ordered.
  void all(const Table& table, std::vector<std::uint32_t>& places) const;
  // That place is served: it is charged, and still to be taken out.
  Charge charge(Time now, const Table& table, std::uint32_t place);
  // It ended having cost so many tokens more (or less) than it was charged.
  void correct(Charge charge, const Turn& turn, std::int64_t tokens);

  std::uint32_t queued(Class klass) const { return group(klass).queued; }
  // How many of its class are served before one that such a tenant adds now.
  std::uint32_t ahead(Class klass, std::uint32_t tenant, std::uint32_t weight) const;
  // Of what is served while all who wait now go on waiting; for a class that does not wait: if it did.
  double share(Class klass) const;
  std::uint32_t flows() const { return flows_n_; }
  template <class A>
  void image(A& a) {
    a(groups_, flows_, index_, free_, flows_n_, serial_, time_, last_charge_);
  }

 private:
  struct Flow {
    std::uint32_t tenant = 0, weight = 1, queued = 0;
    std::uint32_t root = none;  // of its requests' heap
    std::uint32_t serial = 0, next_free = none;
    std::int64_t counter = 0;  // tokens per weight, times `scale`
    Class klass{};
    template <class A>
    void image(A& a) {
      a(tenant, weight, queued, root, serial, next_free, counter, klass);
    }
  };
  struct Group {  // a class
    std::uint32_t weight = 1, queued = 0;
    std::uint64_t weights = 0;  // of the tenants who wait
    double floor = 0, served = 0;
    std::int64_t counter = 0, time = 0;  // time: the counter of the tenant served last
    Ranking<std::int64_t> waiting, idle;
    template <class A>
    void image(A& a) {
      a(weight, queued, weights, floor, served, counter, time, waiting, idle);
    }
  };
  static constexpr std::int64_t scale = 1024;

  Group& group(Class klass) { return groups_[static_cast<std::size_t>(klass)]; }
  const Group& group(Class klass) const { return groups_[static_cast<std::size_t>(klass)]; }
  const Group* next_group() const;
  std::uint32_t flow_of(const Turn& turn);
  std::uint32_t find(Class klass, std::uint32_t tenant) const;
  std::size_t home(Class klass, std::uint32_t tenant) const;
  void index_flow(std::uint32_t flow);
  void forget(std::uint32_t flow);
  void forget_idle(Group& group);
  void rank(Group& group, std::uint32_t flow);

  std::array<Group, classes_n> groups_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> index_;  // open addressing, a power of two, at most half full
  std::uint32_t free_ = none, flows_n_ = 0, serial_ = 0;
  std::int64_t time_ = 0;  // the counter of the class served last
  Time last_charge_{};
};

}  // namespace headgate::policies
