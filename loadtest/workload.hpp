// Traffic as a file of JSON with comments: classes of requests, each with its own rate over time, burstiness, lengths,
// route and limits. All of it is drawn from the seed.
//   {
//     "duration": "10m",
//     "classes": {
//       "chat": {"model": "chat", "rate": [{"per_s": 4}, {"at": "2m", "per_s": 40}, {"at": "130s", "per_s": 4}],
//                "arrivals": "gamma", "cv": 2, "lengths": "azure-conv", "slo": "ttft=1s,tpot=50ms"},
//       "batch": {"model": "chat", "class": "batch", "rate": [{"per_s": 0}, {"at": "10m", "per_s": 5, "ramp": true}],
//                 "prompt_tokens": 8000, "output_tokens": 200, "stream_share": 0}
//     }
//   }
// A rate holds from its `at` to the next one's; with ramp it is reached evenly from the one before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loadtest/options.hpp"
#include "loadtest/trace.hpp"
#include "loadtest/traffic_class.hpp"

namespace headgate::loadtest {

enum class Gaps : std::uint8_t { poisson, gamma };
enum class LengthsKind : std::uint8_t { fixed, azure_conv };

struct RatePoint {
  Nanos at{0};
  double per_s = 0;
  bool ramp = false;
};

struct WorkloadClass {
  std::string model = "chat";
  policies::Class klass = policies::Class::interactive;
  std::string tenant{};           // simulated traffic only
  std::vector<RatePoint> rate{};  // by time, the first at 0
  Gaps arrivals = Gaps::poisson;
  double cv = 1;  // of the gaps, with gamma
  LengthsKind lengths = LengthsKind::fixed;
  std::uint32_t prompt_tokens = 100, output_tokens = 50;
  double stream_share = 1;
  std::optional<double> max_cost_usd{}, min_quality{};
  std::string slo{};  // empty: that of the run
};

struct Workload {
  Nanos duration = std::chrono::minutes(1);
  std::map<std::string, WorkloadClass> classes{};
};

struct WorkloadResult {
  Workload workload{};
  std::vector<TrafficClass> classes{};  // by name
  std::string problem{};                // empty, or "FILE:line: where: what is wrong", one line for each
};
// `slo`: of classes that name none.
WorkloadResult read_workload(std::string_view text, const std::string& name, const std::string& slo);
WorkloadResult read_workload_file(const std::string& path, const std::string& slo);

// The arrivals of all classes, by time, at most `limit` of them (0: all, up to trace_lines_max).
std::vector<Planned> draw_workload(const Workload& workload, std::uint64_t seed, std::uint64_t limit);

}  // namespace headgate::loadtest
