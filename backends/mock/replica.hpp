// One mock model server: listening sockets, an engine driven by one timer, faults, counts. Single-threaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/engine/engine.hpp"
#include "backends/io/buffer.hpp"
#include "backends/io/listener.hpp"
#include "backends/io/task.hpp"
#include "backends/io/wheel.hpp"
#include "backends/mock/connection.hpp"
#include "backends/mock/control.hpp"
#include "backends/mock/faults.hpp"
#include "backends/mock/options.hpp"
#include "backends/mock/outbox.hpp"
#include "backends/mock/request.hpp"
#include "backends/wire/head.hpp"

namespace headgate::mock {

// What the connections of one thread share and reuse.
struct Scratch {
  explicit Scratch(backends::Loop& loop) : wheel(loop), outbox(loop) {}
  backends::BufferPool buffers;
  backends::LoopWheel wheel;
  Outbox outbox;
  wire::HeadReader heads;
  RequestReader requests;
  std::string body;
};

class Replica {
 public:
  Replica(backends::Loop& loop, Scratch& scratch, const MockOptions& options, const engine::Profile& profile,
          std::uint16_t index);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  bool start(std::string& problem);  // listens; false: problem says why not
  void stop();                       // closes everything
  std::uint16_t port() const { return port_; }
  std::uint16_t control_port() const { return control_port_; }

  // For its connections.
  backends::Loop& loop() { return loop_; }
  Scratch& scratch() { return scratch_; }
  const MockOptions& options() const { return options_; }
  const engine::Profile& profile() const { return engine_.profile(); }
  const engine::Engine& engine() const { return engine_; }
  engine::RequestKey submit(Connection& connection, engine::Work work);
  void cancel(engine::RequestKey key);
  FaultSet& faults() { return faults_; }
  ReplicaState& state() { return state_; }
  ItlErrors& itl_errors() { return itl_errors_; }
  std::uint64_t next_request() { return ++requests_; }
  // false: the listening socket cannot be had again. A restart spares the connection that asks for it.
  bool obey(Control control, const Connection* asks, std::string& problem);
  std::string metrics_page() const;
  std::string print();
  bool enter(Connection& connection, Listener listener);  // false: connections_max
  void leave(Connection& connection, Listener listener);

 private:
  using Clock = std::chrono::steady_clock;

  bool listen(Listener listener, std::string& problem);
  void restart(const Restart& how, const Connection* asks);
  bool listen_unless_told_not_to(std::string& problem);
  void run_engine();
  void schedule();

  backends::Loop& loop_;
  Scratch& scratch_;
  const MockOptions& options_;
  std::uint16_t port_, control_port_;
  std::unique_ptr<backends::Listener> data_listener_, control_listener_;
  FaultSet faults_;
  ReplicaState state_;
  ItlErrors itl_errors_;
  std::uint64_t requests_ = 0;
  engine::Engine engine_;
  double speed_ = 1;
  backends::Loop::Timer timer_, back_;  // back_: listens again after a restart
  std::string frozen_metrics_;
  bool stopped_ = false;
  std::vector<engine::EngineEvent> events_;
  std::vector<Connection*> by_place_;  // the connection that submitted the work in that place
  std::vector<Connection*> connections_;
};

}  // namespace headgate::mock
