// Whether a failed attempt may be followed by another, and what that costs. Credit per route: each success deposits
// `budget_per_success`, a retry takes 1, so that in an outage retries stay a tenth of what works (plus what was saved,
// at most budget_max): Finagle's retry budget without its time-based floor. Two kinds are paid otherwise:
//   free        the request was never delivered (End::connect, End::unsent), once per request
//   evacuation  an endpoint died while at least half of its pool is healthy: once, until its next success, as many
//               retries as it had in flight then are granted, so that its requests move whatever the budget says
#pragma once

#include <algorithm>
#include <cstdint>

#include "policies/base/random.hpp"
#include "policies/base/time.hpp"
#include "policies/calls.hpp"
#include "policies/orders.hpp"
#include "policies/outcome.hpp"
#include "policies/plan.hpp"

namespace headgate::policies {

class RetryBudget {
 public:
  // The first call sets the credit; later ones (a reload) only bound what has been saved.
  void configure(const RetryOptions& options);
  void deposit() { credit_ = std::min(credit_ + per_success_, max_); }
  bool withdraw();
  double credit() const { return credit_; }
  template <class A>
  void image(A& a) {
    a(credit_, per_success_, max_);
  }

 private:
  double credit_ = -1, per_success_ = 0, max_ = 0;
};

class Evacuation {
 public:
  // `in_flight`: of the endpoint that died, the failed attempt included. Only the first death grants.
  void died(std::uint32_t in_flight, bool half_of_pool_healthy);
  bool take();
  void succeeded() { granted_ = false, left_ = 0; }
  template <class A>
  void image(A& a) {
    a(granted_, left_);
  }

 private:
  bool granted_ = false;
  std::uint32_t left_ = 0;
};

bool never_delivered(End end);
// Connection lost or stalled: what an endpoint does that dies.
bool looks_dead(End end);
// By kind of failure, attempts made and options alone; where to go and what it costs is asked afterwards.
bool may_try_again(const RetryOptions& options, const Outcome& outcome, std::uint32_t attempts);

// Before the same endpoint is tried again: what it advised, else U[0, min(backoff * 2^n, backoff_max)], n >= 0 the
// number of earlier such waits. `bits`: 64 uniform ones.
Nanos wait_before_same(const RetryOptions& options, Nanos advice, std::uint32_t n, std::uint64_t bits);

// What the caller is told when no further attempt follows. `committed`: content has been relayed.
Code answer_of(const Outcome& outcome, bool committed);

}  // namespace headgate::policies
