// How many requests one endpoint may have in flight, found from how fast its streams get their tokens. Two loops:
//   inner  a window ends after 1 s and 20 gaps between tokens, or after 10 s. With g its mean gap, smoothed over some
//          seven windows unless it jumps by 80 %, and target = itl / spread:
//            g > target                limit *= max(1 - (1 - target / g) / 2, 0.7), unless in flight is still over the
//                                      limit: the last cut works as answers end, a further one would be wound up
//            g < 0.95 target           while in flight reaches 0.8 of the limit: limit += limit * (target / g - 1) / 4,
//                                      at least 0.5, at most sqrt(limit), or limit while g < target / 1.5
//   outer  spread is what stands between the mean gap and the answers that miss: an answer whose mean gap is over itl
//          raises it by 2 %, thrice a window at most, one that keeps it lowers it by 0.04 %, so that it settles where
//          about 1 answer in 50 misses. Within 1 to 3; only while the limit binds and g is at most 1.03 target, and
//          only from answers that began after g was last over 1.1 target: what was slow then was not their bad luck.
//   load signals (429, 503, 529): one in 50 attempts of a window or more: limit *= 0.8.
//   veto   while it binds: tokens per second fall as in flight rises (covariance over 20 windows < 0, correlation
//          under -0.5): limit *= 0.9, the windows are forgotten, and growth is at most 0.25 % a window until they rise
//          together again.
// The gap, not the latency, is controlled, and against a fixed number: end-to-end times follow the length of answers,
// and ratios to a measured best drift (overload-control 0, 9.1). Why the mean and not a quantile of gaps: one step with
// a long prompt decides a quantile of ten steps; the spread is learnt from whole answers instead. Gains were chosen by
// simulation (loadtest/decide.sh itl): twice as large, the limit swings, and its mean is 3 % lower for as many that
// miss.
#pragma once

#include <array>
#include <cstdint>

#include "policies/base/time.hpp"

namespace headgate::policies {

struct AdaptiveOptions {
  Nanos itl = std::chrono::milliseconds(50);  // mean gap that an answer may have
  std::uint32_t min = 2, max = 512;           // of the limit
  template <class A>
  void image(A& a) {
    a(itl, min, max);
  }
};

class AdaptiveLimit {
 public:
  static constexpr std::uint32_t initial = 16;

  // What has been found stays, within the new bounds.
  void configure(const AdaptiveOptions& options);

  // Gaps that have ended since the last call, their sum, and in flight now. True: the limit may have changed.
  bool gaps(Time now, std::uint32_t count, Nanos sum, std::uint32_t in_flight);
  void answered(Time content_at, Nanos mean_gap);  // a stream to its end; content_at: of its first token
  void attempted() { ++attempts_; }
  void overloaded() { ++load_signals_; }

  std::uint32_t limit() const { return static_cast<std::uint32_t>(limit_); }
  Nanos mean_gap() const { return mean_gap_; }  // smoothed; 0: none
  double spread() const { return spread_; }
  template <class A>
  void image(A& a) {
    a(options_, limit_, spread_, mean_gap_, binding_, settled_, raised_, vetoed_, steady_since_, window_began_, gaps_,
      gap_sum_, in_flight_max_, attempts_, load_signals_, history_, windows_);
  }

 private:
  struct Window {
    double in_flight = 0, tokens_per_s = 0;
    template <class A>
    void image(A& a) {
      a(in_flight, tokens_per_s);
    }
  };

  void end_window(Time now);
  void smooth(Nanos gap);
  double correlation() const;
  void start_window(Time now);

  AdaptiveOptions options_;
  double limit_ = initial, spread_ = 1.2;
  Nanos mean_gap_{0};
  bool binding_ = false;  // in the last window
  bool settled_ = false;
  std::uint32_t raised_ = 0;  // in this window
  bool vetoed_ = false;
  Time steady_since_{};
  Time window_began_ = Time::min();
  std::uint64_t gaps_ = 0;
  Nanos gap_sum_{0};
  std::uint32_t in_flight_max_ = 0, attempts_ = 0, load_signals_ = 0;
  std::array<Window, 20> history_{};
  std::uint32_t windows_ = 0;  // in the history, so far
};

}  // namespace headgate::policies
