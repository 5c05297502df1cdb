#include "loadtest/sim/comparison.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "loadtest/arrivals.hpp"

namespace headgate::loadtest {
namespace {

// The numbers of one contender's runs, by JSON pointer: one value per seed, 0 where a run's summary lacks it.
using Values = std::map<std::string, std::vector<double>>;

struct Runs {
  std::vector<std::string> pointers;  // in the order of the summary
  std::vector<Values> of;             // by contender
};

Runs gather(const std::vector<std::vector<Summary>>& summaries, std::uint32_t seeds) {
  Runs runs;
  runs.of.resize(summaries.size());
  for (std::size_t c = 0; c < summaries.size(); ++c) {
    for (std::size_t k = 0; k < seeds; ++k) {
      const Summary flat = summaries[c][k].flatten();
      for (const auto& [pointer, value] : flat.items()) {
        if (!value.is_number()) continue;
        const bool fresh = std::none_of(runs.of.begin(), runs.of.end(),
                                        [&](const Values& values) { return values.contains(pointer); });
        if (fresh) runs.pointers.push_back(pointer);
        std::vector<double>& row = runs.of[c][pointer];
        row.resize(seeds);
        row[k] = value.get<double>();
      }
    }
  }
  for (Values& values : runs.of) {
    for (const std::string& pointer : runs.pointers) values[pointer].resize(seeds);
  }
  return runs;
}

double rounded(double value) { return std::round(value * 1e6) / 1e6; }

template <class ValuesAt>
Summary estimates(const std::vector<std::string>& pointers, ValuesAt&& values_at) {
  Summary tree = Summary::object();
  for (const std::string& pointer : pointers) {
    const Estimate about = estimate(values_at(pointer));
    Summary* at = &tree;  // always objects: a class may be called "0"
    for (std::size_t begin = 1, end = 0; end != pointer.npos; begin = end + 1) {
      end = pointer.find('/', begin);
      at = &(*at)[pointer.substr(begin, end == pointer.npos ? end : end - begin)];
    }
    (*at)["mean"] = rounded(about.mean);
    (*at)["ci95"] = about.ci95 ? Summary(rounded(*about.ci95)) : Summary();
  }
  return tree;
}

constexpr std::size_t title_columns = 24;

struct Line {
  const char *title, *pointer;
  int decimals;
};
constexpr Line lines[] = {{"requests", "/requests", 1},
                          {"ok", "/ok", 1},
                          {"refused", "/refused", 1},
                          {"failed", "/failed_before_first_token", 1},
                          {"cut", "/cut", 1},
                          {"left", "/left", 1},
                          {"callers' retries", "/retries", 1},
                          {"goodput /s", "/goodput/per_s", 2},
                          {"goodput share", "/goodput/share", 3},
                          {"TTFT p50 ms", "/ttft_ms/p50", 1},
                          {"TTFT p90 ms", "/ttft_ms/p90", 1},
                          {"TTFT p99 ms", "/ttft_ms/p99", 1},
                          {"TPOT p50 ms", "/tpot_ms/p50", 1},
                          {"TPOT p99 ms", "/tpot_ms/p99", 1},
                          {"ITL p99 ms", "/itl_ms/p99", 1},
                          {"E2E p50 ms", "/e2e_ms/p50", 1},
                          {"E2E p99 ms", "/e2e_ms/p99", 1},
                          {"queue wait p99 ms", "/queue_ms/p99", 1},
                          {"attempts per request", "/attempts_per_request", 3}};
constexpr Line class_lines[] = {{" requests", "/requests", 1},
                                {" refused", "/refused", 1},
                                {" goodput share", "/goodput/share", 3},
                                {" TTFT p99 ms", "/ttft_ms/p99", 1},
                                {" E2E p99 ms", "/e2e_ms/p99", 1}};

Estimate read(const Summary& all, const std::string& pointer) {
  const Summary::json_pointer at(pointer);
  if (!all.contains(at)) return {};
  const Summary& width = all.at(at).at("ci95");
  return {all.at(at).value("mean", 0.0), width.is_null() ? std::nullopt : std::optional(width.get<double>())};
}

std::string shown(const Estimate& about, int decimals, bool with_sign = false) {
  char text[64];
  std::snprintf(text, sizeof text, with_sign ? "%+.*f" : "%.*f", decimals, about.mean);
  if (!about.ci95) return text;
  const std::string mean = text;
  std::snprintf(text, sizeof text, " ± %.*f", decimals, *about.ci95);
  return mean + text;
}

// Padded to `width` characters; the ± takes two bytes and one column.
std::string column(std::string text, std::size_t width) {
  const std::size_t columns = text.size() - (text.find("±") != text.npos ? 1 : 0);
  return columns < width ? std::string(width - columns, ' ') + text : text;
}

}  // namespace

Estimate estimate(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) return {mean, std::nullopt};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double t = boost::math::quantile(boost::math::students_t(n - 1), 0.975);
  return {mean, t * std::sqrt(squares / (n - 1) / n)};
}

Summary compare(const std::vector<Contender>& contenders, const LoadOptions& load, std::uint32_t seeds,
                const std::function<void(std::size_t done, std::size_t of)>& played) {
  const std::size_t runs = contenders.size() * seeds;
  std::vector<std::vector<Summary>> summaries(contenders.size(), std::vector<Summary>(seeds));
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t done = 0;
  std::string problem;
  const auto work = [&] {
    for (std::size_t run = next++; run < runs; run = next++) {
      const std::size_t c = run % contenders.size(), k = run / contenders.size();
      LoadOptions seeded = load;
      seeded.seed += k;
      const Plan plan = plan_requests(seeded);
      if (plan.problem.empty()) summaries[c][k] = summarize(simulate(contenders[c].settings, plan.requests));
      const std::lock_guard lock(mutex);
      if (!plan.problem.empty() && problem.empty())
        problem = "seed " + std::to_string(seeded.seed) + ": " + plan.problem;
      played(++done, runs);
    }
  };
  {
    std::vector<std::jthread> threads;
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t n = 0; n < std::min(cores, runs); ++n) threads.emplace_back(work);
  }
  if (!problem.empty()) return {{"problem", problem}};
  const Runs all = gather(summaries, seeds);
  Summary comparison = {{"seeds", seeds}, {"first_seed", load.seed}, {"slo", summaries[0][0]["goodput"]["slo"]}};
  constexpr std::array<const char*, 2> names{"a", "b"};
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    Summary part = {{"config", contenders[c].name}};
    part.update(estimates(all.pointers, [&](const std::string& pointer) { return all.of[c].at(pointer); }));
    comparison[names[c]] = part;
  }
  if (contenders.size() == 2) {
    comparison["difference"] = estimates(all.pointers, [&](const std::string& pointer) {
      std::vector<double> pairs(seeds);
      std::transform(all.of[1].at(pointer).begin(), all.of[1].at(pointer).end(), all.of[0].at(pointer).begin(),
                     pairs.begin(), std::minus<>());
      return pairs;
    });
  }
  return comparison;
}

std::string table_of_comparison(const Summary& comparison) {
  const bool two = comparison.contains("b");
  std::string table = "A  " + comparison["a"].value("config", "") + "\n";
  if (two) table += "B  " + comparison["b"].value("config", "") + "\n";
  table += "goodput is within " + comparison.value("slo", "") + "\n\n";
  table += column("", title_columns) + column("A", 20) + (two ? column("B", 20) + column("B - A", 22) : "") + "\n";
  std::vector<std::string> reasons;
  for (const char* part : {"a", "b"}) {
    if (!comparison.contains(part)) continue;
    const Summary none = Summary::object();
    const Summary refused_by = comparison[part].value("refused_by", none);
    for (const auto& [reason, about] : refused_by.items()) {
      if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(reason);
    }
  }
  const auto add = [&](const std::string& title, const std::string& pointer, int decimals) {
    table += title + column("", title_columns - std::min(title_columns, title.size()));
    table += column(shown(read(comparison["a"], pointer), decimals), 20);
    if (two) {
      const Estimate a = read(comparison["a"], pointer), apart = read(comparison["difference"], pointer);
      table += column(shown(read(comparison["b"], pointer), decimals), 20) + column(shown(apart, decimals, true), 22);
      const bool told_apart = apart.ci95 && std::abs(apart.mean) > *apart.ci95;
      table += told_apart ? " *" : "  ";
      char share[32];
      std::snprintf(share, sizeof share, " %+.1f %%", 100 * apart.mean / a.mean);
      if (a.mean != 0 && told_apart) table += share;
    }
    table.erase(table.find_last_not_of(' ') + 1);
    table += "\n";
  };
  for (const Line& line : lines) {
    add(line.title, line.pointer, line.decimals);
    if (std::string(line.title) != "refused") continue;
    for (const std::string& reason : reasons) add("  " + reason, "/refused_by/" + reason, 1);
  }
  if (comparison["a"].contains("cost_usd")) add("cost USD", "/cost_usd", 4);
  if (comparison["a"].contains("classes")) {
    for (const auto& [name, about] : comparison["a"]["classes"].items()) {
      for (const Line& line : class_lines) add(name + line.title, "/classes/" + name + line.pointer, line.decimals);
    }
  }
  if (comparison.contains("faults")) table += "\n" + faults_of(comparison);
  if (comparison["seeds"] == 1) return table + "\nOne seed tells nothing of chance: --seeds 5 gives intervals.\n";
  table += "\nMean over " + comparison["seeds"].dump() + " seeds ± 95 % confidence interval (Student's t)";
  table += two ? "; the same arrivals for both in each seed.\n* the interval of the difference leaves out 0\n" : "\n";
  return table;
}

}  // namespace headgate::loadtest
