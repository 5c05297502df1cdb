// The composition root of a serving process: shards on threads of their own, and on the calling thread everything that
// is not on a request's way (admin listener, probes, the Dispatcher's clock, signals, reload, drain).
#pragma once

#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/signal_set.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/io/io.hpp"
#include "config/catalog.hpp"
#include "gateway/admin.hpp"
#include "gateway/config_watch.hpp"
#include "gateway/health_log.hpp"
#include "gateway/name_book.hpp"
#include "gateway/prober.hpp"
#include "gateway/resolver.hpp"
#include "gateway/serve.hpp"
#include "gateway/shard.hpp"

namespace headgate::gateway {

class Server {
 public:
  // `ids` made the catalog. Binds both listeners; throws std::system_error that names the address.
  Server(ServeOptions options, std::shared_ptr<const config::Catalog> catalog, config::IdBook ids);
  ~Server();
  int run();

 private:
  void turn_wheel(Time at);
  void listen_data();
  void start_shards();
  void wait_for_signal();
  void on_signal(int number);
  ReloadReport reload();
  BackendReport set_backend(std::string_view name, std::string_view body);
  void log_health();
  void look_at_expiry();
  void drain();
  void cut();
  [[noreturn]] void give_up();
  void shard_ended();
  void set_connection_caps(const config::Catalog& catalog);
  bool ready();
  std::string metrics();
  std::string state();
  std::shared_ptr<const config::Catalog> catalog() const { return catalog_.load(); }

  const ServeOptions options_;
  const Time started_ = std::chrono::steady_clock::now();
  const double started_unix_s_;
  const config::ListenOptions listening_;  // as at the start
  config::IdBook ids_;
  std::atomic<std::shared_ptr<const config::Catalog>> catalog_;
  backends::asio::io_context io_{1};
  backends::asio::basic_waitable_timer<std::chrono::steady_clock,
                                       backends::asio::wait_traits<std::chrono::steady_clock>, backends::Executor>
      wheel_timer_{io_.get_executor()};
  backends::Wheel wheel_{[this](Time at) { turn_wheel(at); }};
  std::unique_ptr<EventLog> event_log_;  // null: none is wanted
  DispatchHost host_;
  AccessLog access_log_;
  BodyMemory bodies_;
  std::atomic<bool> draining_{false};
  std::atomic<std::uint32_t> connections_{0};
  AddressCounts addresses_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::thread> threads_;
  std::size_t shards_running_ = 0;
  NameBook names_;
  HealthLog health_log_;
  backends::Alarm tick_, health_look_, expiry_look_, drain_end_, give_up_;
  Prober prober_;
  Resolver resolver_{io_};
  std::unique_ptr<AdminServer> admin_;
  std::optional<ConfigWatch> watch_;
  boost::asio::signal_set signals_;
  std::uint64_t reloads_ok_ = 0, reloads_failed_ = 0;
  std::string last_problem_;
};

}  // namespace headgate::gateway
