// One mock model server: listening sockets, an engine driven by one timer, faults, counts. Single-threaded.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/engine/engine.hpp"
#include "backends/io/buffer.hpp"
#include "backends/io/io.hpp"
#include "backends/io/wheel.hpp"
#include "backends/mock/connection.hpp"
#include "backends/mock/control.hpp"
#include "backends/mock/faults.hpp"
#include "backends/mock/options.hpp"
#include "backends/mock/request.hpp"
#include "backends/wire/head.hpp"

namespace headgate::mock {

// What the connections of one thread share and reuse; nothing in it outlives a step.
struct Scratch {
  explicit Scratch(backends::asio::io_context& io) : wheel(io) {}
  backends::BufferPool buffers;
  backends::Wheel wheel;
  wire::HeadReader heads;
  RequestReader requests;
  std::string body;
};

class Replica {
 public:
  Replica(backends::asio::io_context& io, Scratch& scratch, const MockOptions& options, const engine::Profile& profile,
          std::uint16_t index);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  bool start(std::string& problem);  // listens; false: problem says why not
  void stop();                       // closes everything; destroy only after the io_context has run dry
  std::uint16_t port() const { return port_; }
  std::uint16_t control_port() const { return control_port_; }

  // For its connections.
  Scratch& scratch() { return scratch_; }
  const MockOptions& options() const { return options_; }
  const engine::Profile& profile() const { return engine_.profile(); }
  engine::RequestKey submit(Connection& connection, const engine::Work& work);
  void cancel(engine::RequestKey key);
  FaultPlan& faults() { return faults_; }
  ReplicaState& state() { return state_; }
  std::uint64_t next_request() { return ++requests_; }
  bool obey(Control control, std::string& problem);  // false: the listening socket cannot be had again
  std::string print();
  bool enter(Connection& connection, Listener listener);  // false: connections_max
  void leave(Connection& connection, Listener listener);

 private:
  using Acceptor = backends::asio::basic_socket_acceptor<backends::asio::ip::tcp, backends::Executor>;
  using Clock = std::chrono::steady_clock;
  using Timer = backends::asio::basic_waitable_timer<Clock, backends::asio::wait_traits<Clock>, backends::Executor>;

  bool listen(Acceptor& acceptor, std::uint16_t& port, std::string& problem);
  void accept_on(Acceptor& acceptor, Listener listener);
  backends::Task<> accept_loop(Acceptor& acceptor, Listener listener);
  void run_engine();
  void schedule();

  backends::asio::io_context& io_;
  Scratch& scratch_;
  const MockOptions& options_;
  std::uint16_t port_, control_port_;
  Acceptor acceptor_, control_acceptor_;
  FaultPlan faults_;
  ReplicaState state_;
  std::uint64_t requests_ = 0;
  engine::Engine engine_;
  Timer timer_;
  bool armed_ = false, stopped_ = false;
  Time armed_at_ = never;
  std::vector<engine::EngineEvent> events_;
  std::vector<Connection*> by_place_;  // the connection that submitted the work in that place
  std::vector<Connection*> touched_;   // by the events being delivered
  std::vector<Connection*> connections_;
};

}  // namespace headgate::mock
