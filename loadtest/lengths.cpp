#include "loadtest/lengths.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "policies/base/random.hpp"

namespace headgate::loadtest {
namespace {

constexpr std::array<QuantilePoint, 33> table{{
    {0.000, 2, 7},      {0.001, 8, 12},     {0.005, 17, 14},      {0.010, 29, 16},    {0.020, 91, 24},
    {0.030, 161, 32},   {0.050, 181, 41},   {0.075, 200, 48},     {0.100, 207, 54},   {0.150, 372, 67},
    {0.200, 387, 77},   {0.250, 396, 85},   {0.300, 403, 91},     {0.350, 414, 96},   {0.400, 703, 103},
    {0.450, 984, 113},  {0.500, 1020, 129}, {0.550, 1045, 151},   {0.600, 1071, 177}, {0.650, 1097, 217},
    {0.700, 1130, 384}, {0.750, 1189, 395}, {0.800, 1315, 400},   {0.850, 1876, 411}, {0.900, 2734, 424},
    {0.925, 4075, 430}, {0.950, 4083, 451}, {0.970, 4090, 509},   {0.980, 4098, 540}, {0.990, 4142, 601},
    {0.995, 4831, 643}, {0.999, 6179, 954}, {1.000, 14050, 1000},
}};

// Of the normals under the copula: 2 sin(pi/6 * rank correlation), Pearson 1907.
constexpr double copula_r = 0.0762;

// Each kind of draw has a range of its own, so that none is used twice.
enum Use : std::uint64_t { use_radius = 1, use_angle, use_gap, use_gap_power, use_gap_tries = 1000 };

double open_unit(std::uint64_t seed, std::uint64_t id, std::uint64_t use) { return 1.0 - unit(draw(seed, id, use)); }

double normal_share(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

std::uint32_t at_share(double share, double QuantilePoint::*length) {
  const auto above = std::upper_bound(table.begin() + 1, table.end() - 1, share,
                                      [](double s, const QuantilePoint& point) { return s < point.share; });
  const QuantilePoint &high = *above, &low = *(above - 1);
  const double part = (share - low.share) / (high.share - low.share);
  return static_cast<std::uint32_t>(std::lround(low.*length + part * (high.*length - low.*length)));
}

// Marsaglia and Tsang, A Simple Method for Generating Gamma Variables (2000).
double gamma_of_shape_plus_one(double shape, std::uint64_t seed, std::uint64_t id) {
  const double d = shape + 1 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (std::uint64_t use = use_gap_tries;; use += 3) {  // accepts 95 % at once
    const double x = std::sqrt(-2 * std::log(open_unit(seed, id, use))) *
                     std::cos(2 * std::numbers::pi * unit(draw(seed, id, use + 1)));
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(open_unit(seed, id, use + 2)) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace

std::span<const QuantilePoint> azure_conv_quantiles() { return table; }

Lengths azure_conv_lengths(std::uint64_t seed, std::uint64_t id) {
  // Box-Muller gives two independent normals, which the copula's correlation then joins.
  const double radius = std::sqrt(-2 * std::log(open_unit(seed, id, use_radius)));
  const double angle = 2 * std::numbers::pi * unit(draw(seed, id, use_angle));
  const double first = radius * std::cos(angle);
  const double second = copula_r * first + std::sqrt(1 - copula_r * copula_r) * radius * std::sin(angle);
  return {at_share(normal_share(first), &QuantilePoint::input), at_share(normal_share(second), &QuantilePoint::output)};
}

double exponential_gap(std::uint64_t seed, std::uint64_t id) { return -std::log(open_unit(seed, id, use_gap)); }

// A gamma of any shape is one of shape + 1 times U^(1/shape).
double gamma_gap(double cv, std::uint64_t seed, std::uint64_t id) {
  const double shape = 1 / (cv * cv);
  const double power = std::pow(open_unit(seed, id, use_gap_power), 1 / shape);
  return gamma_of_shape_plus_one(shape, seed, id) * power / shape;
}

// The gap that a moment falls into has a density in proportion to its length, which is a gamma of shape + 1, and the
// moment is anywhere in it.
double first_gamma_gap(double cv, std::uint64_t seed, std::uint64_t id) {
  const double shape = 1 / (cv * cv);
  return gamma_of_shape_plus_one(shape, seed, id) / shape * open_unit(seed, id, use_gap_power);
}

double azure_conv_gap(std::uint64_t seed, std::uint64_t id) { return gamma_gap(azure_conv_gap_cv, seed, id); }

}  // namespace headgate::loadtest
