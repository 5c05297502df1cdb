#include "policies/adaptive_limit.hpp"

#include <algorithm>
#include <cmath>

namespace headgate::policies {
namespace {

using namespace std::chrono_literals;

constexpr Nanos window_min = 1s, window_max = 10s;
constexpr std::uint64_t gaps_min = 20;
constexpr double cut_most = 0.7, steady_room = 0.9, settled_room = 0.97, grow_below = 0.95, binds_at = 0.8,
                 ample_room = 1.5;
constexpr double new_weight = 0.15, jump = 1.8;
constexpr double missed_step = 1.02, kept_step = 0.9996, spread_max = 3;
constexpr std::uint32_t raises_max = 3;
constexpr double load_signal_share = 0.02, load_signal_cut = 0.8;
constexpr double veto_correlation = -0.5, veto_cut = 0.9, vetoed_growth = 0.0025;

double seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void AdaptiveLimit::configure(const AdaptiveOptions& options) {
  options_ = options;
  limit_ = std::clamp(limit_, double(options_.min), double(std::max(options_.min, options_.max)));
}

bool AdaptiveLimit::gaps(Time now, std::uint32_t count, Nanos sum, std::uint32_t in_flight) {
  if (window_began_ == Time::min()) start_window(now);
  gaps_ += count;
  gap_sum_ += sum;
  in_flight_max_ = std::max(in_flight_max_, in_flight);
  const Nanos open = now - window_began_;
  if (open < window_min || (gaps_ < gaps_min && open < window_max)) return false;
  end_window(now);
  start_window(now);
  return true;
}

void AdaptiveLimit::start_window(Time now) {
  window_began_ = now;
  gaps_ = 0;
  gap_sum_ = Nanos{0};
  in_flight_max_ = attempts_ = load_signals_ = 0;
}

void AdaptiveLimit::end_window(Time now) {
  binding_ = in_flight_max_ >= binds_at * std::floor(limit_);
  const double most = std::max(options_.min, options_.max);
  if (load_signals_ > 0 && load_signals_ >= load_signal_share * attempts_) {
    limit_ *= load_signal_cut;
  } else if (gaps_ > 0) {
    smooth(gap_sum_ / static_cast<std::int64_t>(gaps_));
    const double room = seconds(options_.itl) / spread_ / seconds(std::max<Nanos>(mean_gap_, 1us));
    history_[windows_++ % history_.size()] = {double(in_flight_max_),
                                              static_cast<double>(gaps_) / seconds(now - window_began_)};
    const double together = correlation();
    raised_ = 0;
    settled_ = room >= settled_room;
    if (room < steady_room) steady_since_ = now;
    if (room < steady_room || together > -veto_correlation) vetoed_ = false;
    if (room < 1) {
      if (in_flight_max_ <= limit_) limit_ *= std::max(1 - (1 - room) / 2, cut_most);
    } else if (binding_ && together < veto_correlation) {
      limit_ *= veto_cut;
      windows_ = 0;
      vetoed_ = true;
    } else if (binding_ && room * grow_below > 1) {
      const double most_growth = vetoed_ ? vetoed_growth * limit_ : room > ample_room ? limit_ : std::sqrt(limit_);
      limit_ += std::min(most_growth, std::max(0.5, limit_ * (room - 1) / 4));
    }
  }
  limit_ = std::clamp(limit_, double(options_.min), most);
}

void AdaptiveLimit::smooth(Nanos gap) {
  const double ratio = mean_gap_ > Nanos{0} ? seconds(gap) / seconds(mean_gap_) : jump;
  const bool jumps = ratio >= jump || ratio * jump <= 1;
  mean_gap_ =
      jumps ? gap : mean_gap_ + Nanos(std::llround(static_cast<double>((gap - mean_gap_).count()) * new_weight));
}

// Pearson's, of in flight and tokens per second over the last windows; 0 until there are enough.
double AdaptiveLimit::correlation() const {
  if (windows_ < history_.size()) return 0;
  const auto n = static_cast<double>(history_.size());
  double x = 0, y = 0;
  for (const Window& w : history_) x += w.in_flight / n, y += w.tokens_per_s / n;
  double xx = 0, yy = 0, xy = 0;
  for (const Window& w : history_) {
    xx += (w.in_flight - x) * (w.in_flight - x);
    yy += (w.tokens_per_s - y) * (w.tokens_per_s - y);
    xy += (w.in_flight - x) * (w.tokens_per_s - y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

void AdaptiveLimit::answered(Time content_at, Nanos mean_gap) {
  if (!binding_ || !settled_ || content_at < steady_since_) return;
  const bool missed = mean_gap > options_.itl;
  if (missed && raised_++ >= raises_max) return;
  spread_ = std::clamp(spread_ * (missed ? missed_step : kept_step), 1.0, spread_max);
}

}  // namespace headgate::policies
