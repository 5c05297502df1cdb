// One connection of the load generator: a read is always pending, so the peer's end is noticed while idle too.
// Shared because a pending operation's handler must outlive the client that gave the connection up.
#pragma once

#include <boost/asio/buffer.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "backends/io/io.hpp"
#include "loadtest/client.hpp"

namespace headgate::loadtest {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(backends::asio::io_context& io, Client& client) : socket_(io.get_executor()), client_(&client) {}

  void dial(const backends::asio::ip::tcp::endpoint& to, std::unique_ptr<Flight> flight);
  void send(std::unique_ptr<Flight> flight);  // on an idle connection
  void fail(std::string_view transport);      // ends the flight, if any, and the connection
  void abandon();                             // closes without telling the client

  const Flight* flight() const { return flight_.get(); }

 private:
  void write();
  void read();
  void on_read(const backends::ErrorCode& error, std::size_t bytes);
  void finish();

  backends::Socket socket_;
  Client* client_;  // null once abandoned
  std::unique_ptr<Flight> flight_;
  std::string in_;  // [0, filled_) holds what has not been consumed
  std::size_t filled_ = 0;
  bool reused_ = false, answered_ = false, writing_ = false;
  std::string out_;  // what is being written; outlives the flight
};

}  // namespace headgate::loadtest
