// Whether a request that finds no free unit may wait. Per pool:
//   drain  = max(releases per second (EWMA, tau 2 s), in flight / mean time a unit is held); unknown under 20 releases.
//            The floor keeps a pool that was idle a moment ago from looking slow. Only served attempts count: failing
//            fast frees units, but serves nobody.
//   wait   = (queued + 1) / drain
//   admit  iff wait + q90 <= 0.9 * (deadline - now), q90 of TTFT for streams and of E2E for unary answers (0 under 20
//            samples), and wait <= the queue's wait_max. With the drain unknown: up to the queue's bounds.
// (overload-control 9.2; the 0.9 leaves room for the reply itself.)
#pragma once

#include <cstdint>
#include <optional>

#include "policies/base/time.hpp"
#include "policies/stats/quantile.hpp"
#include "policies/stats/rate.hpp"

namespace headgate::policies {

class Forecast {
 public:
  void released(Time now, Nanos held);
  void first_content(Nanos ttft) { ttft_.add(ttft); }
  void completed(Nanos e2e) { e2e_.add(e2e); }

  // Releases per second; none under 20 samples.
  std::optional<double> drain_per_s(Time now, std::uint32_t in_flight) const;
  std::optional<Nanos> wait(Time now, std::uint32_t queued, std::uint32_t in_flight) const;
  Nanos service_q90(bool stream) const;
  double release_rate(Time now) const { return releases_.at(now); }
  template <class A>
  void image(A& a) {
    a(releases_, held_mean_s_, ttft_, e2e_);
  }

 private:
  Rate releases_{std::chrono::seconds{2}};
  double held_mean_s_ = 0;
  WindowQuantile ttft_{0.9}, e2e_{0.9};
};

struct Wait {
  std::optional<Nanos> queue;  // unknown: none
  Nanos service{0};
  Nanos total() const { return queue.value_or(Nanos{0}) + service; }
};

struct Verdict {
  bool admitted = true;
  Nanos predicted{0}, limit{0};  // of a refusal: what was compared
  Nanos excess{0};               // time after which the same request would have been admitted
};

Verdict admit(const Wait& wait, Nanos time_left, Nanos wait_max);

}  // namespace headgate::policies
