// Asks a gateway's admin listener for /admin/state, for the live screen. An absent or silent one leaves the state
// empty.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/io/io.hpp"

namespace headgate::loadtest {

struct AdminState {
  struct Backend {
    std::string name, pool, health;
    std::uint64_t in_flight = 0, in_flight_max = 0;
  };
  struct Pool {
    std::string name;
    std::uint64_t queued = 0;
  };
  std::vector<Backend> backends;
  std::vector<Pool> pools;
};

// Fields that are missing or of another type are left at their defaults; never fails.
AdminState parse_admin_state(const std::string& body);

class AdminPoll {
 public:
  AdminPoll(backends::asio::io_context& io, backends::asio::ip::tcp::endpoint endpoint, std::string authority);
  ~AdminPoll();

  void ask();  // gives up the previous question if it is still open after two of these
  const AdminState& state() const { return state_; }

 private:
  struct Question;
  backends::asio::io_context& io_;
  backends::asio::ip::tcp::endpoint endpoint_;
  std::string request_;
  std::shared_ptr<Question> open_;
  unsigned waited_ = 0;
  AdminState state_;
};

}  // namespace headgate::loadtest
