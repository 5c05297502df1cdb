#include "loadtest/client.hpp"

#include <algorithm>
#include <boost/asio/write.hpp>
#include <cstring>

#include "loadtest/connection.hpp"

namespace headgate::loadtest {
namespace {

namespace asio = backends::asio;
constexpr std::size_t read_bytes = 8 << 10, in_bytes_max = 1 << 20;

Time now() { return std::chrono::steady_clock::now(); }

}  // namespace

void Connection::dial(const asio::ip::tcp::endpoint& to, std::unique_ptr<Flight> flight) {
  flight_ = std::move(flight);
  in_.resize(read_bytes);
  socket_.async_connect(to, [self = shared_from_this()](const backends::ErrorCode& error) {
    if (self->client_ == nullptr) return;
    if (error) return self->fail("connect");
    backends::ErrorCode ignored;
    self->socket_.set_option(asio::ip::tcp::no_delay{true}, ignored);
    ++self->client_->connected_;
    self->write();
    self->read();
  });
}

void Connection::send(std::unique_ptr<Flight> flight) {
  flight_ = std::move(flight);
  reused_ = true;
  write();
}

void Connection::write() {
  answered_ = false;
  flight_->answer.start(flight_->stream);
  writing_ = true;
  out_ = flight_->bytes;
  asio::async_write(socket_, asio::buffer(out_), [self = shared_from_this()](const backends::ErrorCode&, std::size_t) {
    self->writing_ = false;  // an error shows at the pending read as well, after what was received
  });
}

void Connection::read() {
  socket_.async_read_some(asio::buffer(in_.data() + filled_, in_.size() - filled_),
                          [self = shared_from_this()](const backends::ErrorCode& error, std::size_t bytes) {
                            if (self->client_ != nullptr) self->on_read(error, bytes);
                          });
}

void Connection::on_read(const backends::ErrorCode& error, std::size_t bytes) {
  const Time at = now();
  if (error || flight_ == nullptr) {  // bytes on an idle connection belong to no request
    if (flight_ != nullptr && error == asio::error::eof) flight_->answer.end_of_input(at);
    if (flight_ != nullptr && flight_->answer.done() && flight_->answer.facts().complete) return finish();
    return fail(error == asio::error::eof ? "closed" : "reset");
  }
  answered_ = true;
  filled_ += bytes;
  const std::size_t used = flight_->answer.feed({in_.data(), filled_}, at);
  if (used > 0) {
    std::memmove(in_.data(), in_.data() + used, filled_ - used);
    filled_ -= used;
  }
  if (flight_->answer.done()) return finish();
  if (filled_ == in_.size() && in_.size() < in_bytes_max) in_.resize(in_.size() * 2);
  if (filled_ == in_.size()) return fail("malformed");
  read();
}

void Connection::finish() {
  const auto self = shared_from_this();
  std::unique_ptr<Flight> flight = std::move(flight_);
  const bool reusable = flight->answer.keep_alive() && filled_ == 0 && !writing_;
  if (reusable) {
    read();
  } else {
    backends::ErrorCode ignored;
    socket_.close(ignored);
  }
  Client& client = *client_;
  if (!reusable) client_ = nullptr;
  client.released(self, reusable);
  client.ended(std::move(flight), "");
}

void Connection::fail(std::string_view transport) {
  if (client_ == nullptr) return;
  const auto self = shared_from_this();
  Client& client = *client_;
  abandon();
  std::unique_ptr<Flight> flight = std::move(flight_);
  client.released(self, false);
  if (flight == nullptr) return;
  const bool stale = reused_ && !answered_ && transport != "timeout" && transport != "stopped";
  if (stale) return client.give_connection(std::move(flight), true);
  client.ended(std::move(flight), transport);
}

void Connection::abandon() {
  client_ = nullptr;
  backends::ErrorCode ignored;
  socket_.close(ignored);
}

Client::Client(asio::io_context& io, ClientOptions options, Ended ended)
    : io_(io), options_(std::move(options)), ended_(std::move(ended)) {}

Client::~Client() {
  for (const auto& [key, connection] : busy_) connection->abandon();
  for (const auto& connection : idle_) connection->abandon();
}

void Client::start(std::unique_ptr<Flight> flight) { give_connection(std::move(flight), false); }

void Client::give_connection(std::unique_ptr<Flight> flight, bool fresh) {
  if (idle_.empty() || fresh) {
    if (busy_.size() + idle_.size() >= options_.connections_max && !fresh) {
      waiting_.push_back(std::move(flight));
      return;
    }
    if (flight->sent == never) flight->sent = now();
    const auto connection = std::make_shared<Connection>(io_, *this);
    busy_.emplace(connection.get(), connection);
    connection->dial(options_.endpoint, std::move(flight));
    return;
  }
  const std::shared_ptr<Connection> connection = std::move(idle_.back());
  idle_.pop_back();
  busy_.emplace(connection.get(), connection);
  if (flight->sent == never) flight->sent = now();
  connection->send(std::move(flight));
}

void Client::released(const std::shared_ptr<Connection>& connection, bool reusable) {
  if (busy_.erase(connection.get()) == 0) std::erase(idle_, connection);
  if (reusable) idle_.push_back(connection);
  if (waiting_.empty()) return;
  std::unique_ptr<Flight> next = std::move(waiting_.front());
  waiting_.pop_front();
  give_connection(std::move(next), false);
}

void Client::ended(std::unique_ptr<Flight> flight, std::string_view transport) { ended_(*flight, transport); }

void Client::expire(Time at) {
  std::vector<std::shared_ptr<Connection>> late;
  for (const auto& [key, connection] : busy_) {
    if (connection->flight() != nullptr && connection->flight()->deadline <= at) late.push_back(connection);
  }
  for (const auto& connection : late) connection->fail("timeout");
  // A waiting flight never started; those past their deadline are at the front, in order of their start.
  while (!waiting_.empty() && waiting_.front()->deadline <= at) {
    std::unique_ptr<Flight> flight = std::move(waiting_.front());
    waiting_.pop_front();
    flight->sent = at;
    ended(std::move(flight), "timeout");
  }
}

void Client::close(std::string_view why) {
  std::deque<std::unique_ptr<Flight>> waiting = std::move(waiting_);
  waiting_.clear();
  for (auto& flight : waiting) {
    flight->sent = now();
    ended(std::move(flight), why);
  }
  const auto busy = busy_;
  for (const auto& [key, connection] : busy) connection->fail(why);
  for (const auto& connection : idle_) connection->abandon();
  idle_.clear();
}

void Client::each_active(const std::function<void(const Flight&)>& visit) const {
  for (const auto& [key, connection] : busy_) {
    if (connection->flight() != nullptr) visit(*connection->flight());
  }
}

}  // namespace headgate::loadtest
