// Whether an endpoint gives its tokens slower than others of its pool would with the same work. The gap between tokens
// of a continuous batch is about
//   gap = c0 + c1 * streams + c2 * prompt tokens read per step
// (a step reads weights, one cache per stream, and what prompts it was given). A pool fits c0, c1, c2 to the windows of
// its endpoints by least squares that forget (x 0.999 a window), without those that look slow, unless two in five do:
// then that is how the pool is now. An endpoint is slow after two windows in a row at 2.5 times the fitted gap or more,
// and is not slow any more after two at less than 1.5 times. Raw gaps against a median would not do: an emptied slow
// server looks as fast as a full healthy one, and prompts in a step look like slowness.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "policies/base/time.hpp"

namespace headgate::policies {

// What a window of one endpoint has shown: at least 150 ms and 10 gaps.
struct PaceWindow {
  double gap_ms = 0, streams = 0, prompt_tokens_per_step = 0;
};

// Of a pool.
class PaceModel {
 public:
  static constexpr std::uint32_t windows_min = 40;  // before that nobody is slow

  // Gap over what is expected; 1 while too little is known. Learns from it.
  double slowness(const PaceWindow& window);
  double expected_ms(const PaceWindow& window) const;  // 0: unknown
  template <class A>
  void image(A& a) {
    a(squares_, products_, weight_, gap_mean_ms_, outlying_, windows_);
  }

 private:
  static constexpr std::size_t n = 3;
  static std::array<double, n> terms(const PaceWindow& window);
  void learn(const PaceWindow& window);

  std::array<double, n * n> squares_{};
  std::array<double, n> products_{};
  double weight_ = 0, gap_mean_ms_ = 0;
  double outlying_ = 0;  // share of late windows that look slow
  std::uint32_t windows_ = 0;
};

// Of an endpoint.
class Pace {
 public:
  void prompt_read(std::uint32_t tokens) { prompt_tokens_ += tokens; }
  // Gaps that have ended since the last call, their sum, and streams in flight. A window, if one is complete.
  std::optional<PaceWindow> gaps(Time now, std::uint32_t count, Nanos sum, std::uint32_t in_flight);
  // True: that changed whether it is slow.
  bool judge(double slowness, bool may_be_slow);
  bool slow() const { return slow_; }
  void forgive() { slow_ = false, in_a_row_ = 0; }
  template <class A>
  void image(A& a) {
    a(began_, gap_sum_, gaps_, prompt_tokens_, in_a_row_, slow_);
  }

 private:
  Time began_{};
  Nanos gap_sum_{0};
  std::uint32_t gaps_ = 0;
  std::uint64_t prompt_tokens_ = 0;
  std::uint32_t in_a_row_ = 0;  // windows that speak for a change
  bool slow_ = false;
};

}  // namespace headgate::policies
