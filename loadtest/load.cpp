#include "loadtest/load.hpp"

#include <sys/resource.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstdio>
#include <fstream>
#include <optional>

#include "config/address.hpp"
#include "config/units.hpp"
#include "loadtest/arrivals.hpp"
#include "loadtest/output.hpp"
#include "loadtest/report.hpp"
#include "loadtest/runner.hpp"

namespace headgate::loadtest {
namespace {

namespace asio = backends::asio;
constexpr int exit_done = 0, exit_failed = 1, exit_usage = 2;

int usage(const std::string& problem) {
  std::fprintf(stderr, "headgate load: %s\n", problem.c_str());
  return exit_usage;
}

// Where a URL leads; on error, `problem` names the option.
std::optional<asio::ip::tcp::endpoint> find_endpoint(const char* option, const std::string& url, std::string& authority,
                                                     std::string& problem) {
  const auto at = config::parse_backend_url(url);
  if (!at) {
    problem = std::string{option} + " is \"" + url + "\"; http://HOST:PORT is wanted";
    return std::nullopt;
  }
  if (at->tls) {
    problem = std::string{option} + " is \"" + url + "\": https is not spoken; http://HOST:PORT is wanted";
    return std::nullopt;
  }
  authority = config::authority(*at);
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  backends::ErrorCode error;
  const auto found = resolver.resolve(at->host, std::to_string(at->port), error);
  if (error || found.empty()) {
    problem = std::string{option} + " is \"" + url + "\": the host cannot be resolved";
    return std::nullopt;
  }
  return found.begin()->endpoint();
}

// Thousands of streams are as many descriptors.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Everything but the plan; returns what is wrong.
std::string read_settings(const LoadOptions& options, RunSettings& settings) {
  std::string problem, authority;
  const auto target = find_endpoint("target", options.target, authority, problem);
  if (!target) return problem;
  settings.target = *target;
  if (options.path != "chat" && options.path != "completions") {
    return "path is \"" + options.path + "\"; chat or completions is wanted";
  }
  const Path path = options.path == "chat" ? Path::chat : Path::completions;
  settings.asking = {path, authority, options.api_key, options.seed};
  const auto timeout = config::parse_duration(options.timeout);
  if (!timeout || timeout->count() <= 0)
    return "timeout is \"" + options.timeout + "\"; a duration such as 120s is wanted";
  settings.timeout = *timeout;
  if (options.connections_max < 1) return "connections-max must be at least 1";
  settings.connections_max = options.connections_max;
  settings.check_tokens = options.check_tokens;
  settings.title = options.title;
  if (!options.admin.empty()) {
    const auto admin = find_endpoint("admin", options.admin, settings.admin_authority, problem);
    if (!admin) return problem;
    settings.admin = *admin;
  }
  return {};
}

int write_trace(const LoadOptions& options, const std::vector<Planned>& requests) {
  std::ofstream out{options.write_trace, std::ios::binary};
  write_azure_csv(out, requests);
  out.flush();
  if (!out) {
    std::fprintf(stderr, "headgate load: %s: cannot be written\n", options.write_trace.c_str());
    return exit_failed;
  }
  std::printf("%zu requests written to %s\n", requests.size(), options.write_trace.c_str());
  return exit_done;
}

}  // namespace

int load(const LoadOptions& options) {
  Plan plan = plan_requests(options);
  if (!plan.problem.empty()) return usage(plan.problem);
  if (!options.write_trace.empty()) return write_trace(options, plan.requests);
  RunSettings settings;
  if (const std::string problem = read_settings(options, settings); !problem.empty()) return usage(problem);
  std::vector<TimelineEvent> events;
  for (const std::string& text : options.events) {
    std::string problem;
    auto event = parse_event(text, problem);
    if (!event) return usage(problem);
    events.push_back(std::move(*event));
  }
  Output output;
  if (const std::string problem = output.open(options); !problem.empty()) return usage(problem);
  settings.show = options.json == "-" && options.live ? Show::nothing : choose_show(options.live);
  settings.colour = choose_colour();
  raise_descriptor_limit();
  settings.classes = plan.classes;
  const RunResult result = run_plan(settings, plan.requests, std::move(events));
  if (result.connected == 0)
    std::fprintf(stderr, "headgate load: nothing could be sent to %s\n", options.target.c_str());
  const bool done = result.connected > 0 && !result.interrupted;
  return output.report(options, result) && done ? exit_done : exit_failed;
}

}  // namespace headgate::loadtest
