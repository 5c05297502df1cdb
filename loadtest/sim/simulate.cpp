#include "loadtest/sim/simulate.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "backends/mock/profile_file.hpp"
#include "config/load.hpp"
#include "config/units.hpp"
#include "loadtest/arrivals.hpp"
#include "loadtest/output.hpp"
#include "loadtest/sim/comparison.hpp"
#include "loadtest/sim/replay.hpp"
#include "loadtest/sim/simulator.hpp"
#include "policies/base/nearest.hpp"

namespace headgate::loadtest {
namespace {

constexpr int exit_done = 0, exit_failed = 1, exit_usage = 2;

int usage(const std::string& problem) {
  std::fprintf(stderr, "headgate simulate: %s\n", problem.c_str());
  return exit_usage;
}

std::string unknown(const std::string& what, const std::string& name, const std::vector<std::string>& known) {
  std::string text = what + " \"" + name + "\" is unknown; ";
  if (const auto near = nearest(name, known)) return text + "did you mean \"" + *near + "\"?";
  text += "there are:";
  for (const std::string& one : known) text.append(" ").append(one);
  return text;
}

// A profile for each endpoint: demo, unless the list says another; later ones of it win. Empty, or what is wrong.
std::string choose_profiles(const std::vector<std::string>& texts, const config::Catalog& catalog,
                            std::vector<engine::Profile>& out) {
  std::vector<std::string> pools, names;
  for (const auto& [name, pool] : catalog.options.pools) pools.push_back(name);
  for (const engine::Profile& profile : engine::profiles())
    if (profile.paced) names.emplace_back(profile.name);
  std::size_t endpoints = 0;
  for (const auto& endpoint : catalog.plan.endpoints) endpoints = std::max(endpoints, policies::index(endpoint.id) + 1);
  out.assign(endpoints, *engine::find_profile("demo"));
  for (const std::string& text : texts) {
    const std::size_t split = text.find('=');
    const std::string name = split == std::string::npos ? text : text.substr(split + 1);
    const std::string pool = split == std::string::npos ? "" : text.substr(0, split);
    if (split != std::string::npos && !catalog.options.pools.contains(pool)) return unknown("pool", pool, pools);
    std::string problem;
    const auto profile = mock::load_profile(name, problem);
    if (!profile) return problem;
    if (!profile->paced) return unknown("profile", name, names);
    for (const auto& target : catalog.targets) {
      if (target != nullptr && (pool.empty() || target->name.starts_with(pool + "/")))
        out[policies::index(target->endpoint)] = *profile;
    }
  }
  return {};
}

// A configuration, ready to be played; it says what is wrong with it.
std::optional<SimSettings> prepare(const SimulateOptions& options, const std::string& file,
                                   const std::vector<std::string>& sets, const std::vector<TrafficClass>& classes,
                                   Nanos span) {
  config::Loaded loaded = config::load_file(file, sets);
  for (const config::Problem& problem : loaded.problems)
    std::fprintf(stderr, "%s\n", config::to_text(problem, file).c_str());
  if (!loaded.options) return std::nullopt;
  config::IdBook ids;
  SimSettings settings;
  settings.catalog = config::make_catalog(std::move(*loaded.options), ids, 1);
  settings.classes = classes;
  std::vector<std::string> routes;
  for (const auto& [name, route] : settings.catalog->routes) routes.push_back(name);
  std::string problem;
  for (const TrafficClass& one : classes) {
    if (!settings.catalog->routes.contains(one.model)) problem = unknown("model", one.model, routes);
  }
  const std::vector<std::string>& tenants = settings.catalog->tenant_names;
  for (TrafficClass& one : settings.classes) {
    if (one.tenant.empty()) continue;
    const auto at = std::ranges::find(tenants, one.tenant);
    if (at == tenants.end()) {
      problem = unknown("tenant", one.tenant, tenants);
    } else {
      one.tenant_id = settings.catalog->plan.tenants[static_cast<std::size_t>(at - tenants.begin())].id;
    }
  }
  if (problem.empty()) problem = choose_profiles(options.profiles, *settings.catalog, settings.profiles);
  settings.callers = {.retries = options.retries, .seed = options.load.seed};
  if (!options.patience.empty()) {
    const auto patience = config::parse_duration(options.patience);
    if (patience && *patience > Nanos(0)) {
      settings.callers.patience = *patience;
    } else {
      problem = "patience is \"" + options.patience + "\"; a duration such as 20s is wanted";
    }
  }
  if (problem.empty()) settings.faults = parse_faults(options.faults, *settings.catalog, span, problem);
  if (!problem.empty()) {
    usage(options.compare.empty() ? problem : file + ": " + problem);
    return std::nullopt;
  }
  return settings;
}

// A line "MS,BACKEND,WHAT" for each attempt and, looked at ten times a second, for each change of a backend's health.
class AttemptLines {
 public:
  AttemptLines(std::ostream& out, const config::Catalog& catalog) : out_(&out), catalog_(&catalog) {
    out << "ms,backend,what\n";
  }
  void operator()(Time now, const policies::Dispatcher& dispatcher, const policies::Orders& orders) {
    for (const policies::Order& order : orders) {
      const auto* const start = std::get_if<policies::Start>(&order.what);
      if (start != nullptr) line(now, policies::index(start->backend), why[static_cast<std::size_t>(start->why)]);
    }
    if (now < look_at_) return;
    look_at_ = now + std::chrono::milliseconds(100);
    dispatcher.snapshot(seen_);
    for (std::size_t backend = 0; backend < catalog_->targets.size(); ++backend) {
      const auto& target = catalog_->targets[backend];
      if (target == nullptr) continue;
      const std::size_t e = policies::index(target->endpoint);
      if (health_.size() <= e) health_.resize(e + 1);
      const policies::HealthState is = seen_.endpoints[e].health;
      if (health_[e] != is) line(now, backend, states[static_cast<std::size_t>(is)]);
      health_[e] = is;
    }
  }

 private:
  static constexpr std::array why{"first", "queued", "retry", "evacuation"};
  static constexpr std::array states{"is up", "is cooling", "is ejected", "is half_open", "is down", "is slow"};

  void line(Time now, std::size_t backend, const char* what) {
    *out_ << std::chrono::duration_cast<std::chrono::milliseconds>(now - sim_start).count() << ','
          << catalog_->targets[backend]->name << ',' << what << '\n';
  }

  std::ostream* out_;
  const config::Catalog* catalog_;
  policies::Snapshot seen_;
  std::vector<policies::HealthState> health_;
  Time look_at_{};
};

std::string titled(const std::string& file, const std::vector<std::string>& sets) {
  std::string title = file;
  for (const std::string& set : sets) title += (&set == sets.data() ? " with " : ", ") + set;
  return title;
}

// What lies behind the last arrival may be meant, or a slip.
void warn_of_late_faults(const std::vector<SimFault>& faults, Nanos span) {
  const auto late = std::find_if(faults.begin(), faults.end(), [&](const SimFault& fault) {
    return fault.at > span &&
           (fault.state.down || fault.state.stalled || fault.state.slowness != 1 || fault.state.status != 0);
  });
  if (late == faults.end()) return;
  std::fprintf(stderr, "headgate simulate: a fault at %s comes after the last arrival at %.1f s\n",
               config::format_duration(late->at).c_str(), std::chrono::duration<double>(span).count());
}

std::size_t requests_played(const Summary& comparison) {
  double each = 0;
  for (const char* part : {"a", "b"}) {
    if (comparison.contains(part)) each += comparison[part]["requests"]["mean"].get<double>();
  }
  return static_cast<std::size_t>(std::llround(each * comparison["seeds"].get<double>()));
}

// On a terminal, on one line that is taken away at the end.
void show_progress(std::size_t done, std::size_t of) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, done == of ? "\r\033[K" : "\rplayed %zu of %zu runs", done, of);
}

}  // namespace

int simulate(const SimulateOptions& options) {
  if (!options.replay.empty()) {
    const bool plays = !options.config.empty() || !options.load.trace.empty() || !options.load.workload.empty() ||
                       !options.compare.empty() || !options.sets.empty() || !options.faults.empty() ||
                       options.seeds > 1;
    if (plays || !options.load.records.empty() || !options.load.timeline.empty())
      return usage(
          "--replay makes the calls of its log and no others: of the other options it takes --json and --expect");
    return replay_file(options.replay, options.load);
  }
  const Plan plan = plan_requests(options.load);
  if (!plan.problem.empty()) return usage(plan.problem);
  const Nanos span = plan.requests.empty() ? Nanos(0) : plan.requests.back().at;
  auto settings = prepare(options, options.config, options.sets, plan.classes, span);
  if (!settings) return exit_usage;
  const bool compares = options.seeds > 1 || !options.compare.empty();
  if (compares && !(options.load.records.empty() && options.load.timeline.empty() && options.load.attempts.empty()))
    return usage("--records, --timeline and --attempts are of one run: without --seeds and --compare");
  std::vector<Contender> contenders{{titled(options.config, options.sets), std::move(*settings)}};
  if (!options.compare.empty()) {
    auto other = prepare(options, options.compare, {}, plan.classes, span);
    if (!other) return exit_usage;
    contenders.push_back({options.compare, std::move(*other)});
  }
  warn_of_late_faults(contenders.front().settings.faults, span);
  Output output;
  if (const std::string problem = output.open(options.load); !problem.empty()) return usage(problem);
  const auto began = std::chrono::steady_clock::now();
  std::size_t requests = plan.requests.size();
  bool good = true;
  if (compares) {
    Summary comparison = compare(contenders, options.load, options.seeds, show_progress);
    if (comparison.contains("problem")) return usage(comparison["problem"].get<std::string>());
    if (!options.faults.empty()) comparison["faults"] = options.faults;
    requests = requests_played(comparison);
    good = output.show(options.load, comparison, table_of_comparison(comparison));
  } else {
    SimSettings& only = contenders.front().settings;
    if (!options.load.attempts.empty()) only.watch = AttemptLines(output.attempts(), *only.catalog);
    RunResult result = simulate(only, plan.requests);
    result.faults = options.faults;
    good = output.report(options.load, result);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::fprintf(stderr, "simulated %zu requests in %.2f s: %.0f requests/s\n", requests, took.count(),
               static_cast<double>(requests) / std::max(took.count(), 1e-9));
  return good ? exit_done : exit_failed;
}

}  // namespace headgate::loadtest
