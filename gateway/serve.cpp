#include "gateway/serve.hpp"

#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <iostream>

#include "config/load.hpp"
#include "gateway/server.hpp"

namespace headgate::gateway {

namespace {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void log_to_stderr(const std::string& level) {
  auto logger = spdlog::stderr_color_mt("headgate");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  spdlog::set_level(spdlog::level::from_str(level));
}

}  // namespace

int serve(const ServeOptions& options) {
  config::Loaded loaded = config::load_file(options.config);
  for (const config::Problem& problem : loaded.problems) std::cerr << config::to_text(problem, options.config) << '\n';
  if (!loaded.options) return 2;
  log_to_stderr(loaded.options->log.level);
  raise_descriptor_limit();
  ::signal(SIGPIPE, SIG_IGN);
  try {
    config::IdBook ids;
    auto catalog = config::make_catalog(std::move(*loaded.options), ids, 1);
    Server server(options, std::move(catalog), std::move(ids));
    return server.run();
  } catch (const std::exception& failed) {
    spdlog::critical("{}", failed.what());
    return 1;
  }
}

}  // namespace headgate::gateway
