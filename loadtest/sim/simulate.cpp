#include "loadtest/sim/simulate.hpp"

#include <chrono>
#include <cstdio>

#include "config/load.hpp"
#include "config/nearest.hpp"
#include "loadtest/arrivals.hpp"
#include "loadtest/output.hpp"
#include "loadtest/sim/simulator.hpp"

namespace headgate::loadtest {
namespace {

constexpr int exit_done = 0, exit_failed = 1, exit_usage = 2;

int usage(const std::string& problem) {
  std::fprintf(stderr, "headgate simulate: %s\n", problem.c_str());
  return exit_usage;
}

std::string unknown(const std::string& what, const std::string& name, const std::vector<std::string>& known) {
  std::string text = what + " \"" + name + "\" is unknown; ";
  if (const auto near = config::nearest(name, known)) return text + "did you mean \"" + *near + "\"?";
  text += "there are:";
  for (const std::string& one : known) text.append(" ").append(one);
  return text;
}

// A profile for each endpoint; later ones of the list win. Empty, or what is wrong.
std::string choose_profiles(const std::vector<std::string>& texts, const config::Catalog& catalog,
                            std::vector<engine::Profile>& out) {
  std::vector<std::string> pools, names;
  for (const auto& [name, pool] : catalog.options.pools) pools.push_back(name);
  for (const engine::Profile& profile : engine::profiles())
    if (profile.paced) names.emplace_back(profile.name);
  std::size_t endpoints = 0;
  for (const auto& endpoint : catalog.plan.endpoints) endpoints = std::max(endpoints, policies::index(endpoint.id) + 1);
  out.resize(endpoints);
  for (const std::string& text : texts) {
    const std::size_t split = text.find('=');
    const std::string name = split == std::string::npos ? text : text.substr(split + 1);
    const std::string pool = split == std::string::npos ? "" : text.substr(0, split);
    if (split != std::string::npos && !catalog.options.pools.contains(pool)) return unknown("pool", pool, pools);
    const engine::Profile* profile = engine::find_profile(name);
    if (profile == nullptr || !profile->paced) return unknown("profile", name, names);
    for (const auto& target : catalog.targets) {
      if (target != nullptr && (pool.empty() || target->name.starts_with(pool + "/")))
        out[policies::index(target->endpoint)] = *profile;
    }
  }
  return {};
}

}  // namespace

int simulate(const SimulateOptions& options) {
  config::Loaded loaded = config::load_file(options.config);
  for (const config::Problem& problem : loaded.problems)
    std::fprintf(stderr, "%s\n", config::to_text(problem, options.config).c_str());
  if (!loaded.options) return exit_usage;
  config::IdBook ids;
  SimSettings settings;
  settings.catalog = config::make_catalog(std::move(*loaded.options), ids, 1);
  settings.route = options.load.model;
  std::vector<std::string> routes;
  for (const auto& [name, route] : settings.catalog->routes) routes.push_back(name);
  if (!settings.catalog->routes.contains(settings.route)) return usage(unknown("model", settings.route, routes));
  if (const std::string problem = choose_profiles(options.profiles, *settings.catalog, settings.profiles);
      !problem.empty())
    return usage(problem);
  std::string problem;
  const auto slo = parse_slo(options.load.slo, problem);
  if (!slo) return usage(problem);
  settings.slo = *slo;
  const Plan plan = plan_requests(options.load);
  if (!plan.problem.empty()) return usage(plan.problem);
  Output output;
  if (problem = output.open(options.load); !problem.empty()) return usage(problem);
  const auto began = std::chrono::steady_clock::now();
  const RunResult result = simulate(settings, plan.requests);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const bool good = output.report(options.load, settings.slo, result);
  std::fprintf(stderr, "simulated %zu requests, %.0f s, in %.2f s: %.0f requests/s\n", plan.requests.size(),
               std::chrono::duration<double>(result.duration).count(), took.count(),
               static_cast<double>(plan.requests.size()) / std::max(took.count(), 1e-9));
  return good ? exit_done : exit_failed;
}

}  // namespace headgate::loadtest
