// The HTTP client of the load generator: any number of requests in flight on one io_context, keep-alive connections
// handed out last in, first out. Callbacks on own buffers, so a waiting stream costs its connection and nothing else.
// A kept connection that turns out closed before a byte of the answer came is replaced by a fresh one, once.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/io/io.hpp"
#include "loadtest/answer.hpp"

namespace headgate::loadtest {

struct ClientOptions {
  backends::asio::ip::tcp::endpoint endpoint;
  std::uint32_t connections_max = 10000;  // requests over it wait for a free connection
};

struct Flight {
  std::uint64_t id = 0;
  bool stream = true;
  std::string bytes;  // the request; kept until its head has arrived, for the redial
  Time deadline = never;
  Time sent = never;  // when a connection was first begun or taken for it
  AnswerReader answer;
};

class Connection;

class Client {
 public:
  // Called once per request. `transport` as for judge().
  using Ended = std::function<void(const Flight&, std::string_view transport)>;

  Client(backends::asio::io_context& io, ClientOptions options, Ended ended);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void start(std::unique_ptr<Flight> flight);
  void expire(Time now);             // ends what is past its deadline with "timeout"; call it now and then
  void close(std::string_view why);  // ends everything; idle connections close

  std::size_t active() const { return busy_.size() + waiting_.size(); }
  std::uint64_t connected() const { return connected_; }  // connections made so far
  void each_active(const std::function<void(const Flight&)>& visit) const;

 private:
  friend class Connection;
  void give_connection(std::unique_ptr<Flight> flight, bool fresh);
  void released(const std::shared_ptr<Connection>& connection, bool reusable);
  void ended(std::unique_ptr<Flight> flight, std::string_view transport);

  backends::asio::io_context& io_;
  ClientOptions options_;
  Ended ended_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> busy_;
  std::vector<std::shared_ptr<Connection>> idle_;
  std::deque<std::unique_ptr<Flight>> waiting_;
  std::uint64_t connected_ = 0;
};

}  // namespace headgate::loadtest
