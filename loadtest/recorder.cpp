#include "loadtest/recorder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace headgate::loadtest {

// Values below 2^(sub_bits+1) have a bucket each; above, the octave's number is followed by the next 6 bits.
std::size_t Histogram::bucket_of(std::uint64_t us) {
  if (us < (1u << sub_bits)) return static_cast<std::size_t>(us);
  const unsigned octave = static_cast<unsigned>(std::bit_width(us)) - (sub_bits + 1);
  return static_cast<std::size_t>(((octave + 1) << sub_bits) + ((us >> octave) - (1u << sub_bits)));
}

double Histogram::middle_of(std::size_t bucket) {
  if (bucket < (2u << sub_bits)) return static_cast<double>(bucket);
  const unsigned octave = static_cast<unsigned>(bucket >> sub_bits) - 1;
  const std::uint64_t low = ((bucket & ((1u << sub_bits) - 1)) + (1u << sub_bits)) << octave;
  return static_cast<double>(low) + static_cast<double>((1ull << octave) - 1) / 2;
}

void Histogram::record(Nanos value) {
  constexpr std::uint64_t top = (1ull << 40) - 1;
  const std::int64_t ns = std::max<std::int64_t>(value.count(), 0);
  const std::uint64_t us = std::min((static_cast<std::uint64_t>(ns) + 500) / 1000, top);
  ++buckets_[bucket_of(us)];
  ++count_;
  max_us_ = std::max(max_us_, us);
  sum_us_ += static_cast<double>(us);
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t k = 0; k < buckets_.size(); ++k) buckets_[k] += other.buckets_[k];
  count_ += other.count_;
  max_us_ = std::max(max_us_, other.max_us_);
  sum_us_ += other.sum_us_;
}

double Histogram::quantile_us(double share) const {
  if (count_ == 0) return 0;
  const double want = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count_));
  const std::uint64_t rank = std::max<std::uint64_t>(static_cast<std::uint64_t>(want), 1);
  if (rank >= count_) return max_us();
  std::uint64_t seen = 0;
  for (std::size_t k = 0; k < buckets_.size(); ++k) {
    seen += buckets_[k];
    if (seen >= rank) return std::min(middle_of(k), max_us());
  }
  return max_us();
}

}  // namespace headgate::loadtest
