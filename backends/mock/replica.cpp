#include "backends/mock/replica.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace headgate::mock {
namespace {

namespace asio = backends::asio;
using backends::ErrorCode;
using backends::no_throw;
using backends::Socket;
using backends::Task;
using backends::Waker;

Task<> serve_connection(Replica& replica, Socket socket, Listener listener) {
  Connection connection(replica, std::move(socket), listener);
  Waker& waker = connection.waker();
  if (!replica.enter(connection, listener)) co_return;
  while (connection.step()) {
    co_await waker.wait();
  }
  replica.leave(connection, listener);
}

std::uint16_t nth_port(std::uint16_t first, std::uint16_t index) {
  return first == 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(first + index);
}

}  // namespace

Replica::Replica(asio::io_context& io, Scratch& scratch, const MockOptions& options, const engine::Profile& profile,
                 std::uint16_t index)
    : io_(io),
      scratch_(scratch),
      options_(options),
      port_(nth_port(options.port, index)),
      control_port_(nth_port(options.control_port, index)),
      acceptor_(io.get_executor()),
      control_acceptor_(io.get_executor()),
      faults_(options.seed + index),
      engine_(profile),
      timer_(io.get_executor()),
      by_place_(engine_.places(), nullptr) {}

bool Replica::start(std::string& problem) {
  if (!listen(acceptor_, port_, problem)) return false;
  if (control_port_ != 0 && !listen(control_acceptor_, control_port_, problem)) return false;
  accept_on(acceptor_, Listener::data);
  if (control_port_ != 0) accept_on(control_acceptor_, Listener::control);
  return true;
}

void Replica::stop() {
  stopped_ = true;
  ErrorCode ignored;
  acceptor_.close(ignored);
  control_acceptor_.close(ignored);
  timer_.cancel();
  const std::vector<Connection*> all = connections_;  // each leaves the list as it ends
  for (Connection* connection : all) connection->stop();
}

bool Replica::listen(Acceptor& acceptor, std::uint16_t& port, std::string& problem) {
  ErrorCode failed;
  const auto address = asio::ip::make_address(options_.host, failed);
  if (failed) {
    problem = "host must be an IP address such as 127.0.0.1, not \"" + options_.host + "\"";
    return false;
  }
  const asio::ip::tcp::endpoint endpoint(address, port);
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.set_option(asio::socket_base::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (!failed) port = acceptor.local_endpoint(failed).port();
  if (!failed) return true;
  problem = "cannot listen on " + options_.host + ":" + std::to_string(port) + ": " + failed.message();
  ErrorCode ignored;
  acceptor.close(ignored);
  return false;
}

void Replica::accept_on(Acceptor& acceptor, Listener listener) {
  asio::co_spawn(io_.get_executor(), accept_loop(acceptor, listener), asio::detached);
}

Task<> Replica::accept_loop(Acceptor& acceptor, Listener listener) {
  Timer pause(io_.get_executor());
  while (acceptor.is_open()) {
    Socket socket(io_.get_executor());
    auto [failed] = co_await acceptor.async_accept(socket, no_throw);
    if (failed == asio::error::operation_aborted || stopped_) co_return;
    if (!failed) {
      asio::co_spawn(io_.get_executor(), serve_connection(*this, std::move(socket), listener), asio::detached);
      continue;
    }
    pause.expires_after(std::chrono::milliseconds(100));  // out of descriptors: give some back first
    co_await pause.async_wait(no_throw);
    if (stopped_) co_return;
  }
}

engine::RequestKey Replica::submit(Connection& connection, const engine::Work& work) {
  const engine::RequestKey key = engine_.submit(Clock::now(), work);
  if (key == engine::RequestKey::none) return key;
  by_place_[engine::place_of(key)] = &connection;
  schedule();
  return key;
}

void Replica::cancel(engine::RequestKey key) {
  if (key == engine::RequestKey::none) return;
  by_place_[engine::place_of(key)] = nullptr;
  engine_.cancel(Clock::now(), key);
  schedule();
}

bool Replica::obey(Control control, std::string& problem) {
  ErrorCode ignored;
  if (Fault* fault = std::get_if<Fault>(&control)) {
    faults_.set(*std::move(fault));
    if (faults_.refusing()) acceptor_.close(ignored);
    return true;
  }
  faults_.clear();
  if (acceptor_.is_open()) return true;
  if (!listen(acceptor_, port_, problem)) return false;
  accept_on(acceptor_, Listener::data);
  return true;
}

std::string Replica::print() {
  state_.running = engine_.running();
  state_.waiting = engine_.waiting();
  state_.listening = acceptor_.is_open();
  return print_state(state_, faults_);
}

bool Replica::enter(Connection& connection, Listener listener) {
  if (connections_.size() >= options_.connections_max || stopped_) return false;
  connections_.push_back(&connection);
  if (listener == Listener::data) {
    ++state_.connections;
    ++state_.accepted;
  }
  return true;
}

void Replica::leave(Connection& connection, Listener listener) {
  const auto it = std::find(connections_.begin(), connections_.end(), &connection);
  *it = connections_.back();
  connections_.pop_back();
  if (listener == Listener::data) --state_.connections;
}

void Replica::run_engine() {
  events_.clear();
  engine_.advance(Clock::now(), events_);
  touched_.clear();
  for (const engine::EngineEvent& event : events_) {
    Connection* connection = by_place_[engine::place_of(event.key)];
    if (connection == nullptr || connection->key() != event.key) continue;
    if (!connection->touched()) touched_.push_back(connection);
    if (event.what == engine::EngineEvent::What::finished) by_place_[engine::place_of(event.key)] = nullptr;
    connection->on_engine(event);
  }
  // A connection may end when woken, so each is woken once, after the last event was delivered.
  for (Connection* connection : touched_) connection->waker().wake();
  schedule();
}

void Replica::schedule() {
  const Time at = engine_.next();
  if (at == never || stopped_ || (armed_ && armed_at_ <= at)) return;
  armed_ = true;
  armed_at_ = at;
  timer_.expires_at(at);
  timer_.async_wait([this](const ErrorCode& failed) {
    if (failed) return;
    armed_ = false;
    run_engine();
  });
}

}  // namespace headgate::mock
