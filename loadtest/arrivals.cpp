#include "loadtest/arrivals.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "config/units.hpp"
#include "loadtest/lengths.hpp"
#include "loadtest/workload.hpp"
#include "policies/base/random.hpp"

namespace headgate::loadtest {
namespace {

constexpr const char* too_many = "more than 10000000 requests; lower rate, duration or limit";
constexpr std::uint64_t use_stream = 100, use_spread = 101;  // of draw(); apart from those of lengths.cpp

std::string check(const LoadOptions& options) {
  const bool by_rate = options.rate != 0;
  if (by_rate + !options.trace.empty() + !options.workload.empty() != 1)
    return "give exactly one of --workload, --trace and --rate";
  if (!(options.rate >= 0) || options.rate > 1e6) return "rate must be in 0..1000000 requests per second";
  if (!(options.speed > 0) || options.speed > 1e6) return "speed must be above 0 and at most 1000000";
  if (!(options.stream_share >= 0 && options.stream_share <= 1)) return "stream-share must be in 0..1";
  if (by_rate && options.limit == 0 && options.duration.empty()) return "with --rate give --duration or --limit";
  if (options.lengths != "fixed" && options.lengths != "azure-conv") {
    return "lengths is \"" + options.lengths + "\"; fixed or azure-conv is wanted";
  }
  if (options.arrivals != "poisson" && options.arrivals != "gamma" && options.arrivals != "azure-conv") {
    return "arrivals is \"" + options.arrivals + "\"; poisson, gamma or azure-conv is wanted";
  }
  if (!(options.cv >= 0.05 && options.cv <= 20)) return "cv must be in 0.05..20";
  for (const std::uint32_t length : {options.prompt_tokens, options.output_tokens}) {
    if (length < 1 || length > trace_tokens_max) return "prompt-tokens and output-tokens must be in 1..1000000";
  }
  return {};
}

// A plan may span as much as a trace may: 1e12 ms, some 30 years.
constexpr double span_max_ns = 1e18;

std::string too_long(const LoadOptions& options) {
  char text[160];
  std::snprintf(text, sizeof text, "speed is %g: the plan would take longer than 30 years%s", options.speed,
                options.rate != 0 ? "; raise speed or rate, or give --duration" : "; raise it");
  return text;
}

Plan draw_plan(const LoadOptions& options, std::optional<Nanos> duration) {
  Plan plan;
  const bool fitted_lengths = options.lengths == "azure-conv";
  double at_s = 0;
  for (std::uint64_t id = 0; options.limit == 0 || id < options.limit; ++id) {
    const double gap = options.arrivals == "poisson" ? exponential_gap(options.seed, id)
                       : options.arrivals == "gamma"
                           ? (id == 0 ? first_gamma_gap : gamma_gap)(options.cv, options.seed, id)
                           : azure_conv_gap(options.seed, id);
    if (id > 0 || options.arrivals == "gamma") at_s += gap / options.rate;  // else the first leaves at once
    const double at_ns = at_s / options.speed * 1e9;
    if (duration && at_ns > static_cast<double>(duration->count())) break;
    if (at_ns > span_max_ns) {
      plan.problem = too_long(options);
      return plan;
    }
    const Nanos at{std::llround(at_ns)};
    if (id == trace_lines_max) {
      plan.problem = too_many;
      return plan;
    }
    Lengths lengths{options.prompt_tokens, options.output_tokens};
    if (fitted_lengths) lengths = azure_conv_lengths(options.seed, id);
    plan.requests.push_back({.at = at, .input = lengths.input, .output = lengths.output});
  }
  return plan;
}

// A Mooncake trace tells times in bins: who shares one is spread evenly over it, that is up to the next one.
void spread_batches(std::vector<Planned>& requests, std::uint64_t seed) {
  Nanos bin{0};
  for (std::size_t first = 0; first < requests.size();) {
    std::size_t next = first;
    while (next < requests.size() && requests[next].at == requests[first].at) ++next;
    if (next < requests.size()) bin = requests[next].at - requests[first].at;  // the last is as long as the one before
    for (std::size_t n = first; n < next && next - first > 1; ++n) {
      const double share = unit(draw(seed, n, use_spread));
      requests[n].at += Nanos{static_cast<std::int64_t>(static_cast<double>(bin.count()) * share)};
    }
    first = next;
  }
  std::ranges::stable_sort(requests, {}, &Planned::at);
  const Nanos begin = requests.front().at;
  for (Planned& planned : requests) planned.at -= begin;
}

// What is later than the duration, or than any plan may be, is left out.
void at_speed(const LoadOptions& options, std::optional<Nanos> duration, Plan& plan) {
  const double longest = duration ? static_cast<double>(duration->count()) : span_max_ns;
  const auto at_ns = [&](const Planned& planned) { return static_cast<double>(planned.at.count()) / options.speed; };
  const auto dropped = std::erase_if(plan.requests, [&](const Planned& planned) { return at_ns(planned) > longest; });
  if (dropped > 0 && !duration) plan.problem = too_long(options);
  for (Planned& planned : plan.requests) planned.at = Nanos{std::llround(at_ns(planned))};
}

Plan play_workload(const LoadOptions& options, std::optional<Nanos> duration) {
  WorkloadResult read = read_workload_file(options.workload, options.slo);
  Plan plan;
  plan.problem = std::move(read.problem);
  if (!plan.problem.empty()) return plan;
  plan.classes = std::move(read.classes);
  plan.requests = draw_workload(read.workload, options.seed, options.limit);
  if (plan.requests.size() > trace_lines_max) plan.problem = too_many;
  at_speed(options, duration, plan);
  if (plan.requests.empty() && plan.problem.empty())
    plan.problem = options.workload + ": no request arrives within the duration";
  return plan;
}

}  // namespace

Plan plan_requests(const LoadOptions& options) {
  Plan plan;
  plan.problem = check(options);
  if (!plan.problem.empty()) return plan;
  std::optional<Nanos> duration;
  if (!options.duration.empty()) {
    const auto parsed = config::parse_duration(options.duration);
    if (!parsed || parsed->count() <= 0) {
      plan.problem = "duration is \"" + options.duration + "\"; a duration such as 45s is wanted";
      return plan;
    }
    duration = *parsed;
  }
  if (!options.workload.empty()) return play_workload(options, duration);
  const auto slo = parse_slo(options.slo, plan.problem);
  if (!slo) return plan;
  bool says_which_stream = false;
  if (options.trace.empty()) {
    plan = draw_plan(options, duration);
  } else {
    TraceResult trace = read_trace_file(options.trace, options.limit);
    plan.problem = std::move(trace.problem);
    says_which_stream = trace.says_which_stream;
    plan.requests = std::move(trace.requests);
    plan.prefixes = std::move(trace.prefixes);
    if (plan.prefixes != nullptr) spread_batches(plan.requests, options.seed);
    at_speed(options, duration, plan);
  }
  plan.classes = {{.name = "", .model = options.model, .slo = *slo}};
  if (plan.requests.empty() && plan.problem.empty()) plan.problem = "no request arrives within the duration";
  for (std::uint64_t id = 0; id < plan.requests.size() && !says_which_stream; ++id) {
    plan.requests[id].stream = unit(draw(options.seed, id, use_stream)) < options.stream_share;
  }
  return plan;
}

}  // namespace headgate::loadtest
