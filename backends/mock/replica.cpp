#include "backends/mock/replica.hpp"

#include <algorithm>
#include <system_error>

namespace headgate::mock {
namespace {

using backends::Task;
using backends::Waker;

Task<> serve_connection(Replica& replica, int fd, Listener listener) {
  Connection connection(replica, fd, listener);
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

Replica::Replica(backends::Loop& loop, Scratch& scratch, const MockOptions& options, const engine::Profile& profile,
                 std::uint16_t index)
    : loop_(loop),
      scratch_(scratch),
      options_(options),
      port_(nth_port(options.port, index)),
      control_port_(nth_port(options.control_port, index)),
      faults_(options.seed + index),
      engine_(profile),
      timer_(loop, [this] { run_engine(); }),
      by_place_(engine_.places(), nullptr) {}

bool Replica::start(std::string& problem) {
  return listen(Listener::data, problem) && (control_port_ == 0 || listen(Listener::control, problem));
}

void Replica::stop() {
  stopped_ = true;
  data_listener_.reset();
  control_listener_.reset();
  timer_.set(never);
  const std::vector<Connection*> all = connections_;  // each leaves the list as it ends
  for (Connection* connection : all) connection->stop();
}

bool Replica::listen(Listener listener, std::string& problem) {
  std::uint16_t& port = listener == Listener::data ? port_ : control_port_;
  try {
    const int fd = backends::open_listener(*backends::Endpoint::numeric(options_.host, port));
    port = backends::port_of(fd);
    // Posted: a connection may bring the fault that closes this very listener.
    auto accepted = [this, listener](int connection, const backends::IpAddress&) {
      loop_.post(
          [this, listener, connection] { backends::spawn(serve_connection(*this, connection, listener), [] {}); });
    };
    (listener == Listener::data ? data_listener_ : control_listener_) =
        std::make_unique<backends::Listener>(loop_, fd, std::move(accepted));
    return true;
  } catch (const std::system_error& failed) {
    problem = "cannot listen on " + options_.host + ":" + std::to_string(port) + ": " + failed.code().message();
    return false;
  }
}

engine::RequestKey Replica::submit(Connection& connection, engine::Work work) {
  const engine::RequestKey key = engine_.submit(Clock::now(), std::move(work));
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
  if (Fault* fault = std::get_if<Fault>(&control)) {
    faults_.set(*std::move(fault));
    if (faults_.refusing()) data_listener_.reset();
    return true;
  }
  faults_.clear();
  return data_listener_ || listen(Listener::data, problem);
}

std::string Replica::print() {
  state_.running = engine_.running();
  state_.waiting = engine_.waiting();
  state_.listening = data_listener_ != nullptr;
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
  if (!stopped_) timer_.set(engine_.next());
}

}  // namespace headgate::mock
