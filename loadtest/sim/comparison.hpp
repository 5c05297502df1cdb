// One or two configurations played with the same seeds: means over the seeds with their 95 % confidence intervals, and
// the paired difference of the two. Both are played with the same arrivals in each seed, so that what the draws do to
// both drops out of the difference.
//
//   Summary all = compare({{"a.jsonc", a}, {"b.jsonc", b}}, load, 5, std::cerr);
//   all["difference"]["goodput"]["per_s"]  // {"mean": 6.8, "ci95": 0.7}, of the second over the first
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loadtest/options.hpp"
#include "loadtest/report.hpp"
#include "loadtest/sim/simulator.hpp"

namespace headgate::loadtest {

struct Contender {
  std::string name;
  SimSettings settings;
};

// {"seeds": N, "first_seed": S, "a": {..}, "b": {..}, "difference": {..}}: the numbers of a run's summary, each as
// {"mean", "ci95"}; ci95 is null with one seed. "b" and "difference" with two contenders. Runs share the cores;
// `played` hears of each that is over. Where a
// seed gives no plan: {"problem": why}.
Summary compare(const std::vector<Contender>& contenders, const LoadOptions& load, std::uint32_t seeds,
                const std::function<void(std::size_t done, std::size_t of)>& played);

std::string table_of_comparison(const Summary& comparison);

struct Estimate {
  double mean = 0;
  std::optional<double> ci95;  // half the width, by Student's t with n - 1 degrees of freedom; none of a single value
};
Estimate estimate(const std::vector<double>& values);

}  // namespace headgate::loadtest
