// One who pays: what it may have, and how much of that is taken. A request takes one of requests per minute, the tokens
// it is estimated to cost, and a place while it waits or runs; the tokens are corrected when it ends. All limits are
// asked before any is taken.
#pragma once

#include <optional>

#include "policies/gcra.hpp"
#include "policies/orders.hpp"
#include "policies/plan.hpp"

namespace headgate::policies {

class Tenant {
 public:
  void configure(const TenantPlan& plan) {
    weight_ = plan.weight;
    klass_ = plan.klass;
    limits_ = plan.limits;
  }
  std::uint32_t weight() const { return weight_; }
  Class klass() const { return klass_; }
  bool limited() const { return limits_.requests_per_minute || limits_.tokens_per_minute || limits_.concurrency; }
  std::uint32_t open() const { return open_; }

  // What one more request of so many tokens would exceed; retry_after: when it would not.
  std::optional<Answer> over(Time now, std::uint64_t tokens) const;
  void take(Time now, std::uint64_t tokens);
  // One has ended that cost so many tokens more than it took, or less.
  void ended(Time now, std::int64_t tokens);

  RateState rates(Time now) const;
  template <class A>
  void image(A& a) {
    a(weight_, klass_, limits_, requests_, tokens_, open_);
  }

 private:
  std::uint32_t weight_ = 1;
  Class klass_ = Class::interactive;
  TenantLimits limits_;
  Gcra requests_, tokens_;
  std::uint32_t open_ = 0;
};

}  // namespace headgate::policies
