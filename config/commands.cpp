#include "config/commands.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

#include "config/load.hpp"

namespace headgate::config {
namespace {

constexpr int exit_ok = 0;
constexpr int exit_config = 2;

struct Counts {
  std::size_t pools, backends, routes;
};

Counts counts_of(const Options& options) {
  Counts counts{options.pools.size(), 0, options.routes.size()};
  for (const auto& [name, pool] : options.pools) counts.backends += pool.backends.size();
  return counts;
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

int check_json(const std::string& file, const Loaded& loaded, std::ostream& out) {
  nlohmann::ordered_json report{{"file", file}, {"ok", loaded.options.has_value()}};
  if (loaded.options) {
    const Counts counts = counts_of(*loaded.options);
    report["pools"] = counts.pools;
    report["backends"] = counts.backends;
    report["routes"] = counts.routes;
    report["config"] = nlohmann::ordered_json::parse(redacted(*loaded.options));
  } else {
    report["problems"] = nlohmann::ordered_json::array();
    for (const Problem& problem : loaded.problems) {
      report["problems"].push_back({{"line", problem.line}, {"path", problem.path}, {"message", problem.message}});
    }
  }
  out << report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  return loaded.options ? exit_ok : exit_config;
}

}  // namespace

int check(const std::string& file, bool json, std::ostream& out, std::ostream& err) {
  const Loaded loaded = load_file(file);
  if (json) return check_json(file, loaded, out);
  for (const Problem& problem : loaded.problems) err << to_text(problem, file) << '\n';
  if (!loaded.options) return exit_config;
  const Counts counts = counts_of(*loaded.options);
  out << file << ": ok: " << counted(counts.pools, "pool") << ", " << counted(counts.backends, "backend") << ", "
      << counted(counts.routes, "route") << '\n';
  return exit_ok;
}

int print_schema(std::ostream& out) {
  out << schema();
  return exit_ok;
}

int print_reference(std::ostream& out) {
  out << reference();
  return exit_ok;
}

}  // namespace headgate::config
