// Whether a request that finds no free unit may wait. Per pool:
//   drain  = max(releases per second (EWMA, tau 2 s), in flight / mean time a unit is held); unknown under 20 releases.
//            The floor keeps a pool that was idle a moment ago from looking slow. Only served attempts count: failing
//            fast frees units, but serves nobody.
//   wait   = (ahead + 1) / rate, where the class of the request is served at
//            rate = max(its share * drain, drain - starts of the other classes per second (EWMA, tau 2 s))
//            and a repeat, which everybody who comes later overtakes, at
//            rate = drain - arrivals of new requests per second (EWMA, tau 2 s)
//   admit  iff wait + q90 of TTFT <= 0.7 * (content by - now), for unary answers also wait + q90 of E2E
//            <= 0.7 * (deadline - now) (quantiles: 0 under 20 samples), and wait <= the queue's wait_max. With the
//            drain unknown: up to the queue's bounds.
// (overload-control 9.2. The 0.7: at 0.9, one answer in 25 came too late under overload, at 0.7 one in 100, and as many
// are served: a longer queue serves nobody sooner.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "policies/base/time.hpp"
#include "policies/plan.hpp"
#include "policies/stats/quantile.hpp"
#include "policies/stats/rate.hpp"

namespace headgate::policies {

class Forecast {
 public:
  void released(Time now, Nanos held);
  void arrived(Time now) { arrivals_.event(now); }  // a new request, no repeat
  void started(Time now, Class klass) { starts_[static_cast<std::size_t>(klass)].event(now); }
  void first_content(Nanos ttft) {
    ttft_q90_.add(ttft);
    ttft_q50_.add(ttft);
  }
  void completed(Nanos e2e) { e2e_.add(e2e); }
  // A whole answer, its first content `ttft` after its start (zero: it came at once, as one).
  void answered(Time now, Nanos ttft, Nanos e2e, std::uint32_t output_tokens);

  // Releases per second; none under 20 samples.
  std::optional<double> drain_per_s(Time now, std::uint32_t in_flight) const;
  struct Place {
    std::uint32_t ahead = 0;
    bool repeat = false;
    Class klass = Class::interactive;
    double share = 1;  // of its class, while all who wait go on waiting
  };
  std::optional<Nanos> wait(Time now, const Place& place, std::uint32_t in_flight) const;
  // Zero under 20 samples.
  Nanos ttft_q50() const { return known(ttft_q50_); }
  Nanos ttft_q90() const { return known(ttft_q90_); }
  Nanos e2e_q90() const { return known(e2e_); }
  Nanos tpot() const { return tpot_; }  // mean of late answers (EWMA, 1/16 each); zero: none has come
  // Nothing has been answered lately and nothing is on its way: what is known may not be so any more.
  bool stale(Time now, std::uint32_t in_flight) const { return in_flight == 0 && now - answered_at_ > stale_after; }
  double release_rate(Time now) const { return releases_.at(now); }
  template <class A>
  void image(A& a) {
    a(releases_, arrivals_, starts_, held_mean_s_, ttft_q50_, ttft_q90_, e2e_, tpot_, answered_at_);
  }

 private:
  static constexpr std::uint64_t samples_min = 20;
  static constexpr Nanos tau = std::chrono::seconds(2), stale_after = std::chrono::seconds(10);
  static Nanos known(const WindowQuantile& of) { return of.samples() < samples_min ? Nanos{0} : of.value(); }

  Rate releases_{tau}, arrivals_{tau};
  std::array<Rate, classes_n> starts_{Rate{tau}, Rate{tau}, Rate{tau}, Rate{tau}};
  double held_mean_s_ = 0;
  WindowQuantile ttft_q50_{0.5}, ttft_q90_{0.9}, e2e_{0.9};
  Nanos tpot_{0};
  Time answered_at_{};
};

// What is predicted and what is left of a budget.
struct Prospect {
  std::optional<Nanos> wait;  // unknown: none
  Nanos service{0}, left{0};
};

struct Verdict {
  bool admitted = true;
  Nanos predicted{0}, limit{0};  // of a refusal: what was compared
  Nanos excess{0};               // time after which the same request would have been admitted
};

// Into a queue whose wait is at most `wait_max`: by the budget that is exceeded most.
Verdict admit(const Prospect& content, const Prospect& whole, Nanos wait_max);
Verdict admit(const Prospect& prospect);

}  // namespace headgate::policies
