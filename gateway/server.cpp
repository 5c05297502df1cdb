#include "gateway/server.hpp"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "config/address.hpp"
#include "config/load.hpp"
#include "gateway/admin_backend.hpp"
#include "gateway/metric_list.hpp"
#include "gateway/state.hpp"
#include "policies/base/nearest.hpp"

namespace headgate::gateway {

namespace asio = backends::asio;

namespace {

constexpr Nanos health_look_every = std::chrono::seconds(1);
constexpr Nanos expiry_look_every = std::chrono::hours(24);
constexpr Nanos names_wait = std::chrono::seconds(3);  // at the start, for backends given by name
constexpr Nanos cut_grace = std::chrono::seconds(5);   // after cutting: what has not ended by then is left behind

// What a reload cannot change, against what this process runs with.
std::vector<std::string> ignored_until_restart(const config::Options& now, std::size_t workers,
                                               const config::ListenOptions& listening) {
  std::vector<std::string> ignored;
  const auto compare = [&](const char* field, const std::string& written, const std::string& running) {
    if (written == running) return;
    ignored.push_back(std::string(field) + " is " + written + " now; ignored until a restart, " + running + " stays");
  };
  compare("$.workers", std::to_string(now.workers), std::to_string(workers));
  compare("$.listen.data", now.listen.data, listening.data);
  compare("$.listen.admin", now.listen.admin, listening.admin);
  return ignored;
}

constexpr std::int64_t expiry_warning_days = 14;

double unix_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::uint64_t expiry_unix_s(const config::Catalog& catalog) {
  return catalog.certificate
             ? static_cast<std::uint64_t>(std::max<std::int64_t>(catalog.certificate->expires_unix_s(), 1))
             : 0;
}

void warn_of_expiry(const config::Catalog& catalog) {
  if (!catalog.certificate) return;
  const double days = (static_cast<double>(catalog.certificate->expires_unix_s()) - unix_now()) / 86400;
  const std::string& file = catalog.options.listen.tls.certificate;
  if (days < 0) {
    spdlog::error("{}: the certificate has expired: callers will refuse it", file);
  } else if (days < expiry_warning_days) {
    spdlog::warn("{}: the certificate expires in {:.1f} days", file, days);
  }
}

std::string event_log_line(const ServeOptions& options, const config::Catalog& catalog) {
  if (options.event_log.empty()) return {};
  auto config = nlohmann::json::parse(config::redacted(catalog.options));
  for (auto& key : config["keys"]) {
    if (key.contains("sha256")) key["sha256"] = "***";  // an unsalted digest can be guessed
  }
  const std::string build = nlohmann::json(options.version).dump();
  return std::string(config::event_log_begin) + "\"build\":" + build + ",\"config\":" + config.dump() + "}\n";
}

}  // namespace

Server::Server(ServeOptions options, std::shared_ptr<const config::Catalog> catalog, config::IdBook ids)
    : options_(std::move(options)),
      started_unix_s_(unix_now()),
      listening_(catalog->options.listen),
      ids_(std::move(ids)),
      catalog_(catalog),
      host_(*catalog),
      access_log_(catalog->options.log.access),
      bodies_(catalog->options.limits.bodies->count),
      tick_(wheel_, [this] { host_.tick(); }),
      health_look_(wheel_, [this] { log_health(); }),
      expiry_look_(wheel_, [this] { look_at_expiry(); }),
      drain_end_(wheel_, [this] { cut(); }),
      give_up_(wheel_, [this] { give_up(); }),
      prober_(io_, catalog->options.seed,
              [this](policies::EndpointId endpoint, bool ok) { host_.probed(endpoint, ok); }),
      signals_(io_, SIGTERM, SIGINT, SIGHUP) {
  names_.learn(*catalog);
  set_connection_caps(*catalog);
  const Shared shared{host_,
                      access_log_,
                      bodies_,
                      draining_,
                      connections_,
                      addresses_,
                      [this] { return ready(); },
                      [this](std::uint16_t asking, std::shared_ptr<const config::Target> target) {
                        for (const auto& shard : shards_) {
                          if (shard->number != asking) shard->give_up_idle(target);
                        }
                      }};
  for (std::uint32_t n = 0; n < catalog->options.workers; ++n) {
    shards_.push_back(std::make_unique<Shard>(static_cast<std::uint16_t>(n), shared, catalog));
  }
  std::vector<OrderPort*> ports;
  for (const auto& shard : shards_) ports.push_back(shard.get());
  host_.connect(std::move(ports),
                [this](Time at) { asio::post(io_, [this, at] { tick_.set(std::min(at, tick_.at())); }); });
  listen_data();
  AdminHooks hooks{.metrics = [this] { return metrics(); },
                   .state = [this] { return state(); },
                   .reload = [this] { return reload(); },
                   .drain = [this] { drain(); },
                   .backend = [this](std::string_view name, std::string_view body) { return set_backend(name, body); },
                   .ready = [this] { return ready(); }};
  const AdminSettings settings{.listen = catalog->options.listen.admin, .token = catalog->options.admin.token};
  admin_ = std::make_unique<AdminServer>(io_, settings, std::move(hooks));
  if (options_.watch) watch_.emplace(io_, options_.config, [this] { reload(); });
  if (!options_.event_log.empty()) {  // last, as a process that cannot start must leave the old one
    std::error_code none;
    if (std::filesystem::equivalent(options_.event_log, options_.config, none))
      throw std::runtime_error("event log \"" + options_.event_log + "\" is the configuration");
    event_log_ =
        std::make_unique<EventLog>(options_.event_log, options_.event_log_max, event_log_line(options_, *catalog));
    host_.record_into(*event_log_, *catalog);
  }
}

Server::~Server() = default;

void Server::turn_wheel(Time at) {
  wheel_timer_.expires_at(at);
  wheel_timer_.async_wait([this](const backends::ErrorCode& stopped) {
    if (!stopped) wheel_.turn();
  });
}

// The first socket of a port is bound without SO_REUSEPORT, so that a taken port fails; the others join it.
void Server::listen_data() {
  const std::string& text = catalog()->options.listen.data;
  const config::HostPort at = *config::parse_listen(text).value;
  std::uint16_t port = at.port;  // one given as 0 is known after the first
  try {
    for (std::size_t n = 0; n < shards_.size(); ++n) {
      const int fd = backends::open_listener(*backends::Endpoint::numeric(at.host, port), n > 0);
      backends::share_port(fd);
      port = backends::port_of(fd);
      shards_[n]->listen(fd);
    }
  } catch (const std::system_error& failed) {
    throw std::system_error(failed.code(), "cannot listen on " + text);
  }
  spdlog::info("serving {} on {}:{}", catalog()->certificate ? "https" : "http", at.host, port);
}

int Server::run() {
  admin_->start();
  prober_.set_targets(catalog()->probes);
  resolver_.set_targets(*catalog());
  const Time names_by = std::chrono::steady_clock::now() + names_wait;
  while (!resolver_.all_known() && std::chrono::steady_clock::now() < names_by) io_.run_one_until(names_by);
  start_shards();
  log_health();
  look_at_expiry();
  wait_for_signal();
  spdlog::info("admin on {}:{}; {} worker(s), configuration version {}",
               config::parse_listen(listening_.admin).value->host, admin_->port(), shards_.size(), catalog()->version);
  io_.run();
  for (std::thread& thread : threads_) thread.join();
  std::uint64_t cut = 0;
  for (const auto& shard : shards_) cut += shard->cut_at_stop;
  if (cut > 0) {
    spdlog::warn("drained with {} request(s) cut", cut);
  } else {
    spdlog::info("drained, nothing was cut");
  }
  return cut > 0 ? 3 : 0;
}

void Server::start_shards() {
  shards_running_ = shards_.size();
  for (const auto& shard : shards_) {
    threads_.emplace_back([this, &shard] {
      shard->run();
      asio::post(io_, [this] { shard_ended(); });
    });
  }
}

void Server::wait_for_signal() {
  signals_.async_wait([this](const backends::ErrorCode& stopped, int number) {
    if (stopped) return;
    on_signal(number);
    wait_for_signal();
  });
}

void Server::on_signal(int number) {
  if (number == SIGHUP) {
    reload();
  } else if (draining_) {
    spdlog::warn("second signal: ending now");
    ::_exit(3);
  } else {
    drain();
  }
}

void Server::drain() {
  if (draining_.exchange(true)) return;
  const Nanos grace = catalog()->options.drain;
  spdlog::info("draining for up to {} s", std::chrono::duration<double>(grace).count());
  for (const auto& shard : shards_) shard->stop_listening();
  drain_end_.set(after(std::chrono::steady_clock::now(), grace));
}

void Server::cut() {
  for (const auto& shard : shards_) shard->cut_all();
  give_up_.set(std::chrono::steady_clock::now() + cut_grace);
}

void Server::give_up() {
  spdlog::error("requests did not end after being cut: leaving them");
  ::_exit(3);
}

void Server::shard_ended() {
  if (--shards_running_ > 0) return;
  backends::ErrorCode ignored;
  signals_.cancel(ignored);
  admin_->stop();
  prober_.stop();
  resolver_.stop();
  if (watch_) watch_->stop();
  tick_.cancel();
  health_look_.cancel();
  expiry_look_.cancel();
  drain_end_.cancel();
  give_up_.cancel();
  wheel_timer_.cancel();
}

void Server::set_connection_caps(const config::Catalog& catalog) {
  for (const auto& target : catalog.targets) {
    if (target) target->connections->most(target->connections_max);
  }
}

bool Server::ready() { return !draining_ && host_.any_servable(*catalog()); }

ReloadReport Server::reload() {
  ReloadReport report;
  if (watch_) watch_->read();
  config::Loaded loaded = config::load_file(options_.config);
  for (const config::Problem& problem : loaded.problems)
    report.problems.push_back(config::to_text(problem, options_.config));
  std::shared_ptr<const config::Catalog> next;
  if (loaded.options) {
    try {
      next = config::make_catalog(std::move(*loaded.options), ids_, catalog()->version + 1);
    } catch (const std::exception& wrong) {  // ids have run out, or a file changed since it was checked
      report.problems.emplace_back(wrong.what());
    }
  }
  report.version = catalog()->version;
  if (next) {
    const std::string trouble = access_log_.reopen(next->options.log.access);
    if (!trouble.empty()) report.problems.push_back(trouble);
    if (!trouble.empty()) next = nullptr;
  }
  if (!next) {
    ++reloads_failed_;
    last_problem_ = report.problems.empty() ? "" : report.problems.front();
    for (const std::string& problem : report.problems) spdlog::error("reload refused: {}", problem);
    return report;
  }
  const config::Options& now = next->options;
  report.warnings = ignored_until_restart(now, shards_.size(), listening_);
  for (const std::string& warning : report.warnings) spdlog::warn("reload: {}", warning);
  names_.learn(*next);
  bodies_.bytes_max(now.limits.bodies->count);
  set_connection_caps(*next);
  host_.replan(*next, event_log_line(options_, *next));
  for (const auto& shard : shards_) shard->use(next);
  admin_->set_token(now.admin.token);
  prober_.set_targets(next->probes);
  resolver_.set_targets(*next);
  spdlog::set_level(spdlog::level::from_str(now.log.level));
  catalog_ = next;
  look_at_expiry();
  ++reloads_ok_;
  report.ok = true;
  report.version = next->version;
  spdlog::info("configuration version {} is in use", next->version);
  return report;
}

void Server::look_at_expiry() {
  warn_of_expiry(*catalog());
  expiry_look_.set(std::chrono::steady_clock::now() + expiry_look_every);
}

void Server::log_health() {
  policies::Snapshot snapshot;
  host_.snapshot(snapshot);
  const Time now = std::chrono::steady_clock::now();
  for (const HealthLog::Line& line : health_log_.compare(now, snapshot, names_))
    spdlog::log(line.warning ? spdlog::level::warn : spdlog::level::info, line.text);
  host_.flush_event_log();
  health_look_.set(now + health_look_every);
}

BackendReport Server::set_backend(std::string_view name, std::string_view body) {
  const auto current = catalog();
  std::vector<std::string> known;
  const config::Target* target = nullptr;
  for (const auto& one : current->targets) {
    if (!one) continue;
    if (one->name == name) target = one.get();
    known.push_back(one->name);
  }
  if (target == nullptr) {
    return {.status = 404, .problem = "There is no backend \"" + std::string(name) + "\"" + suggestion(name, known)};
  }
  const HandSettingRead read = read_hand_setting(body);
  if (!read.problem.empty()) return {.status = 400, .problem = read.problem};
  host_.set_by_hand(target->endpoint, read.setting);
  BackendReport report;
  policies::Snapshot snapshot;
  host_.snapshot(snapshot);
  for (const policies::EndpointState& endpoint : snapshot.endpoints) {
    if (endpoint.id != target->endpoint) continue;
    report.drained = endpoint.drained;
    report.weight = endpoint.hand_weight;
  }
  spdlog::info("backend {}: {}, weight {}", name, report.drained ? "drained" : "in use",
               report.weight == 0 ? "as configured" : std::to_string(report.weight));
  return report;
}

std::string Server::metrics() {
  policies::Snapshot snapshot;
  host_.snapshot(snapshot);
  const auto sum = std::make_unique<ShardCounters>();
  for (const auto& shard : shards_) sum->add(shard->counters);
  return render_metrics({.snapshot = snapshot,
                         .counters = *sum,
                         .names = names_,
                         .connections = ids_.connections(),
                         .lock_held = host_.lock_held(),
                         .config_version = catalog()->version,
                         .reloads_ok = reloads_ok_,
                         .reloads_failed = reloads_failed_,
                         .access_log_dropped = access_log_.dropped(),
                         .event_log_lost = event_log_ ? event_log_->lost() : 0,
                         .event_log_open = event_log_ && !event_log_->failed(),
                         .body_bytes_held = bodies_.held(),
                         .certificate_expires_unix_s = expiry_unix_s(*catalog()),
                         .draining = draining_,
                         .process_start_time_s = started_unix_s_,
                         .build_version = options_.version});
}

std::string Server::state() {
  policies::Snapshot snapshot;
  host_.snapshot(snapshot);
  const Time now = std::chrono::steady_clock::now();
  const auto current = catalog();
  return render_state({.snapshot = snapshot,
                       .catalog = *current,
                       .names = names_,
                       .now = now,
                       .uptime = now - started_,
                       .draining = draining_,
                       .reloads_failed = reloads_failed_,
                       .last_problem = last_problem_});
}

}  // namespace headgate::gateway
