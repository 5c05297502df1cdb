// Prompt and output lengths and arrival gaps distributed as in the Azure 2023 conversation trace: fitted numbers only.
//
// Source: AzureLLMInferenceTrace_conv.csv of Azure/AzurePublicDataset, published with Patel et al., "Splitwise:
// Efficient Generative LLM Inference Using Phase Splitting", ISCA 2024; licence CC-BY 4.0. Fitted over its 19,366
// requests: quantile tables of both lengths (linear in between), joined by a Gaussian copula that reproduces their
// rank correlation of 0.073; gaps as a gamma distribution with the trace's coefficient of variation of 1.094.
#pragma once

#include <cstdint>
#include <span>

namespace headgate::loadtest {

struct Lengths {
  std::uint32_t input = 0, output = 0;  // tokens, at least 1
};

// The lengths of request number `id`; a pure function of its arguments.
Lengths azure_conv_lengths(std::uint64_t seed, std::uint64_t id);

// The gap before request number `id` in units of the mean gap; gamma: with that coefficient of variation, over 0.
double azure_conv_gap(std::uint64_t seed, std::uint64_t id);
double gamma_gap(double cv, std::uint64_t seed, std::uint64_t id);
// Before the first request after any moment: without it bursty arrivals would come to more than their rate.
double first_gamma_gap(double cv, std::uint64_t seed, std::uint64_t id);
double exponential_gap(std::uint64_t seed, std::uint64_t id);

// The shipped figures, for tests and notes.
struct QuantilePoint {
  double share;
  double input, output;  // tokens
};
std::span<const QuantilePoint> azure_conv_quantiles();
inline constexpr double azure_conv_input_mean = 1155, azure_conv_output_mean = 211;
inline constexpr double azure_conv_gap_cv = 1.094, azure_conv_gap_mean_s = 0.1808;
inline constexpr double azure_conv_rank_correlation = 0.073;

}  // namespace headgate::loadtest
