#include "backends/mock/replica.hpp"

#include <algorithm>
#include <cstdio>
#include <system_error>

#include "backends/mock/vllm_metrics.hpp"

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
      back_(loop,
            [this] {
              std::string problem;
              if (listen_unless_told_not_to(problem)) return;
              std::fprintf(stderr, "headgate mock: %s; trying again each second\n", problem.c_str());
              back_.set(after(Clock::now(), std::chrono::seconds(1)));
            }),
      by_place_(engine_.places(), nullptr) {}

bool Replica::start(std::string& problem) {
  return listen(Listener::data, problem) && (control_port_ == 0 || listen(Listener::control, problem));
}

void Replica::stop() {
  stopped_ = true;
  data_listener_.reset();
  control_listener_.reset();
  timer_.set(never);
  back_.set(never);
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

bool Replica::obey(Control control, const Connection* asks, std::string& problem) {
  if (auto* fault = std::get_if<Fault>(&control)) {
    if (fault->kind == FaultKind::frozen_metrics) frozen_metrics_ = metrics_page();
    faults_.set(*std::move(fault));
    if (faults_.has(FaultKind::refuse)) data_listener_.reset();
    return true;
  }
  if (const auto* clear = std::get_if<ClearFaults>(&control)) {
    clear->kind ? faults_.clear(*clear->kind) : faults_.clear();
    return listen_unless_told_not_to(problem);
  }
  if (const auto* tuning = std::get_if<Tuning>(&control)) {
    if (tuning->speed) {
      speed_ = *tuning->speed;
      engine_.slow_down(1 / speed_);
    }
    if (tuning->slots) engine_.use_slots(*tuning->slots);
    return true;
  }
  if (const auto* how = std::get_if<Restart>(&control)) restart(*how, asks);
  return true;
}

// As a new process would be, but that it is told no faults to forget.
void Replica::restart(const Restart& how, const Connection* asks) {
  data_listener_.reset();
  const std::vector<Connection*> all = connections_;  // each leaves the list as it ends
  for (Connection* connection : all) {
    if (connection != asks && connection->listener() == Listener::data) connection->stop();
  }
  const std::uint32_t slots = engine_.slots();
  engine_ = engine::Engine(engine_.profile());
  engine_.use_slots(slots);
  engine_.slow_down(1 / speed_);
  std::fill(by_place_.begin(), by_place_.end(), nullptr);
  timer_.set(never);
  back_.set(after(Clock::now(), std::chrono::milliseconds(how.down_ms)));
}

bool Replica::listen_unless_told_not_to(std::string& problem) {
  const bool now = !data_listener_ && !stopped_ && back_.at() == never && !faults_.has(FaultKind::refuse);
  return !now || listen(Listener::data, problem);
}

std::string Replica::metrics_page() const {
  if (faults_.has(FaultKind::frozen_metrics)) return frozen_metrics_;
  return print_metrics(engine_, itl_errors_, options_.models.empty() ? "mock" : options_.models.front());
}

std::string Replica::print() {
  state_.running = engine_.running();
  state_.waiting = engine_.waiting();
  state_.speed = speed_;
  state_.slots = engine_.slots();
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
  for (const engine::EngineEvent& event : events_) {
    Connection* connection = by_place_[engine::place_of(event.key)];
    if (connection == nullptr || connection->key() != event.key) continue;
    if (event.what == engine::EngineEvent::What::finished) by_place_[engine::place_of(event.key)] = nullptr;
    connection->on_engine(event);
    scratch_.outbox.put(*connection, event.at);
  }
  scratch_.outbox.send();  // after the last event was delivered: a connection may end when woken
  schedule();
}

void Replica::schedule() {
  if (!stopped_) timer_.set(engine_.next());
}

}  // namespace headgate::mock
