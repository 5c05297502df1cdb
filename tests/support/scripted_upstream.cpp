#include "support/scripted_upstream.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "support/answers.hpp"

namespace headgate::support {
namespace {

int left_ms(Time until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now()).count();
  return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left, 0, 60'000));
}

// Where the request at the front of `bytes` ends, and its decoded body; nothing while it is not whole.
struct Whole {
  Head head;
  std::string body;
  std::size_t used = 0;
};
std::optional<Whole> whole_request(std::string_view bytes) {
  auto head = parse_head(bytes);
  if (!head) return std::nullopt;
  Whole whole{std::move(*head), {}, 0};
  const std::string_view rest = bytes.substr(whole.head.raw.size());
  if (whole.head.has("transfer-encoding")) {
    Chunked chunks = decode_chunks(rest);
    if (!chunks.complete) return std::nullopt;
    whole.body = std::move(chunks.body);
    whole.used = whole.head.raw.size() + chunks.used;
    return whole;
  }
  const std::string length = whole.head.get("content-length");
  const std::size_t size = length.empty() ? 0 : std::strtoull(length.c_str(), nullptr, 10);
  if (rest.size() < size) return std::nullopt;
  whole.body = rest.substr(0, size);
  whole.used = whole.head.raw.size() + size;
  return whole;
}

}  // namespace

bool Exchange::write(std::string_view bytes) {
  if (gone_ || closed_here_) return false;
  {
    const std::lock_guard lock(owner_.mutex_);
    if (arrival_.target() != "/health") owner_.written_.push_back({arrival_.number, now(), std::string(bytes)});
  }
  if (send_all(socket_, bytes, after(now(), 60s))) return true;
  note_gone();
  return false;
}

bool Exchange::write_last(std::string_view bytes) {
  {
    const std::lock_guard lock(owner_.mutex_);
    answered_ = true;
  }
  return write(bytes);
}

Exchange::Woke Exchange::sleep(Time until, const Event* event) {
  if (gone_ || closed_here_) return Woke::gone;
  std::array<pollfd, 3> waited{pollfd{socket_.descriptor(), POLLRDHUP, 0}, pollfd{owner_.stop_.descriptor(), POLLIN, 0},
                               pollfd{event ? event->descriptor() : -1, POLLIN, 0}};
  for (;;) {
    const int ready = ::poll(waited.data(), waited.size(), left_ms(until));
    if (ready > 0) {
      if (waited[2].revents != 0) return Woke::event;
      if (waited[0].revents != 0) note_gone();
      return Woke::gone;
    }
    if (ready == 0 && now() >= until) return Woke::time;
  }
}

bool Exchange::wait_until(Time when) { return sleep(when, nullptr) == Woke::time; }
bool Exchange::wait_for(Event& event, Nanos within) { return sleep(after(now(), within), &event) == Woke::event; }

bool Exchange::wait_until_gone(Nanos within) {
  sleep(after(now(), within), nullptr);
  return gone_;
}

void Exchange::note_gone() {
  if (std::exchange(gone_, true)) return;
  const std::lock_guard lock(owner_.mutex_);
  owner_.closings_.push_back({arrival_.connection, now(), true, arrival_.number});
}

void Exchange::close() {
  closed_here_ = true;
  const std::lock_guard lock(owner_.mutex_);
  answered_ = true;
  socket_.close();
}

void Exchange::reset() {
  closed_here_ = true;
  const std::lock_guard lock(owner_.mutex_);
  answered_ = true;
  socket_.reset();
}

ScriptedUpstream::ScriptedUpstream(Script script, std::uint16_t port)
    : listener_(listen_on_loopback(port)),
      port_(listener_.port()),
      script_(std::move(script)),
      health_([](Exchange& x) { x.write(plain_reply(200, "{}")); }),
      acceptor_([this] { accept_all(); }) {}

ScriptedUpstream::~ScriptedUpstream() {
  stop_.set();
  acceptor_.join();
  for (Connection& connection : connections_) connection.thread.join();
}

void ScriptedUpstream::accept_all() {
  std::array<pollfd, 2> waited{pollfd{listener_.descriptor(), POLLIN, 0}, pollfd{stop_.descriptor(), POLLIN, 0}};
  for (;;) {
    ::poll(waited.data(), waited.size(), -1);
    if (waited[1].revents != 0) return;
    while (Socket accepted = accept_from(listener_)) {
      const std::lock_guard lock(mutex_);
      Connection& connection = connections_.emplace_back();
      connection.socket = std::move(accepted);
      connection.number = connections_.size() - 1;
      connected_max_ = std::max(connected_max_, count_connected());
      connection.thread = std::thread([this, &connection] { serve(connection); });
    }
  }
}

void ScriptedUpstream::serve(Connection& connection) {
  for (std::size_t n = 0;; ++n) {
    Arrival arrival;
    arrival.connection = connection.number;
    arrival.on_connection = n;
    if (!read_request(connection, arrival)) break;
    const bool last = same_name(arrival.head.get("connection"), "close");
    if (!run(connection, std::move(arrival)) || last) break;
  }
  end(connection);
}

void ScriptedUpstream::end(Connection& connection, bool with_reset) {
  const std::lock_guard lock(mutex_);
  if (with_reset) connection.socket.reset();
  connection.socket.close();
}

bool ScriptedUpstream::read_request(Connection& connection, Arrival& into) {
  Time until;
  bool with_reset;
  bool interim_sent = false;
  {
    const std::lock_guard lock(mutex_);
    until = after(now(), idle_limit_);
    with_reset = idle_reset_;
  }
  std::array<pollfd, 2> waited{pollfd{connection.socket.descriptor(), POLLIN, 0},
                               pollfd{stop_.descriptor(), POLLIN, 0}};
  for (;;) {
    if (auto whole = whole_request(connection.unread)) {
      into.at = now();
      into.head = std::move(whole->head);
      into.body = std::move(whole->body);
      into.raw = connection.unread.substr(0, whole->used);
      connection.unread.erase(0, whole->used);
      return true;
    }
    if (!interim_sent && connection.unread.find("\r\n\r\n") != std::string::npos) {
      interim_sent = true;
      const std::string interim = [this] {
        const std::lock_guard lock(mutex_);
        return interim_;
      }();
      send_all(connection.socket, interim, after(now(), 10s));
    }
    const int ready = ::poll(waited.data(), waited.size(), left_ms(until));
    if (ready == 0 && now() >= until) {
      if (with_reset) end(connection, true);
      return false;
    }
    if (waited[1].revents != 0) return false;
    if (ready <= 0) continue;
    Received received = receive(connection.socket, now());
    if (received.what == Got::closed || received.what == Got::reset) {
      const std::lock_guard lock(mutex_);
      closings_.push_back({connection.number, now(), false, 0});
      return false;
    }
    connection.unread += received.bytes;
    if (!received.bytes.empty()) until = Time::max();  // the idle limit is for silence before a request
  }
}

bool ScriptedUpstream::run(Connection& connection, Arrival arrival) {
  const bool probe = arrival.method() == "GET" && arrival.target() == "/health";
  Exchange exchange(*this, connection.socket, std::move(arrival));
  Script script;
  {
    const std::lock_guard lock(mutex_);
    script = probe ? health_ : script_;
    if (probe) {
      probes_.push_back(exchange.arrival_.at);
    } else {
      exchange.arrival_.number = arrivals_.size();
      arrivals_.push_back(exchange.arrival_);
      running_.push_back(&exchange);
      open_max_ = std::max(open_max_, count_open());
    }
  }
  script(exchange);
  const std::lock_guard lock(mutex_);
  std::erase(running_, &exchange);
  return !exchange.gone_ && !exchange.closed_here_;
}

std::size_t ScriptedUpstream::count_open() const {
  std::size_t open = 0;
  for (const Exchange* exchange : running_) {
    if (exchange->answered_) continue;
    // a peer that has already closed has given the request up, though the script's thread may not have woken yet
    pollfd state{exchange->socket_.descriptor(), POLLRDHUP, 0};
    if (::poll(&state, 1, 0) == 0) ++open;
  }
  return open;
}

std::size_t ScriptedUpstream::count_connected() const {
  std::size_t connected = 0;
  for (const Connection& connection : connections_) {
    pollfd state{connection.socket.descriptor(), POLLRDHUP, 0};
    if (state.fd >= 0 && ::poll(&state, 1, 0) == 0) ++connected;
  }
  return connected;
}

void ScriptedUpstream::set_script(Script script) {
  const std::lock_guard lock(mutex_);
  script_ = std::move(script);
}

void ScriptedUpstream::set_health(Script script) {
  const std::lock_guard lock(mutex_);
  health_ = std::move(script);
}

void ScriptedUpstream::set_interim(std::string bytes) {
  const std::lock_guard lock(mutex_);
  interim_ = std::move(bytes);
}

void ScriptedUpstream::set_idle_limit(Nanos limit, bool with_reset) {
  const std::lock_guard lock(mutex_);
  idle_limit_ = limit;
  idle_reset_ = with_reset;
}

std::vector<Arrival> ScriptedUpstream::arrivals() const {
  const std::lock_guard lock(mutex_);
  return arrivals_;
}

std::size_t ScriptedUpstream::arrival_count() const {
  const std::lock_guard lock(mutex_);
  return arrivals_.size();
}

std::vector<Closing> ScriptedUpstream::closings() const {
  const std::lock_guard lock(mutex_);
  return closings_;
}

std::vector<Closing> ScriptedUpstream::abandoned() const {
  std::vector<Closing> found = closings();
  std::erase_if(found, [](const Closing& closing) { return !closing.during_request; });
  return found;
}

std::vector<Written> ScriptedUpstream::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

std::vector<Time> ScriptedUpstream::probes() const {
  const std::lock_guard lock(mutex_);
  return probes_;
}

std::size_t ScriptedUpstream::connection_count() const {
  const std::lock_guard lock(mutex_);
  return connections_.size();
}

std::size_t ScriptedUpstream::connected_max() const {
  const std::lock_guard lock(mutex_);
  return connected_max_;
}

std::size_t ScriptedUpstream::open_now() const {
  const std::lock_guard lock(mutex_);
  return count_open();
}

std::size_t ScriptedUpstream::open_max() const {
  const std::lock_guard lock(mutex_);
  return open_max_;
}

bool ScriptedUpstream::await_arrivals(std::size_t count, Nanos within) const {
  return eventually(within, [&] { return arrival_count() >= count; });
}

}  // namespace headgate::support
