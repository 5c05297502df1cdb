// Looks the names of backends up, each every few seconds, and puts what it finds where attempts dial from: all
// addresses of a name, in the order the system gives them. A failed lookup leaves the last addresses in use. On the
// control thread; Asio's resolver has a thread of its own.
#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/ip/basic_resolver.hpp>
#include <memory>
#include <vector>

#include "backends/io/io.hpp"
#include "config/catalog.hpp"

namespace headgate::gateway {

class Resolver {
 public:
  explicit Resolver(backends::asio::io_context& io);
  ~Resolver() { stop(); }
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // From now on the names of these targets; addresses known from before are there at once.
  void set_targets(const config::Catalog& catalog);
  bool all_known() const;  // every name was looked up at least once, with whatever result
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  using Timer = backends::asio::basic_waitable_timer<Clock, backends::asio::wait_traits<Clock>, backends::Executor>;
  struct Name;
  void look_up(const std::shared_ptr<Name>& name);

  backends::asio::io_context& io_;
  std::vector<std::shared_ptr<Name>> names_;
};

}  // namespace headgate::gateway
