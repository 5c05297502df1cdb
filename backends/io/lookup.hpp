// The addresses behind a host name. A numeric address is there at once; a name is looked up on Asio's resolver thread,
// and the waker rings when it has been. Dropping the Lookup forgets the answer.
#pragma once

#include <boost/asio/ip/basic_resolver.hpp>
#include <memory>
#include <string>
#include <vector>

#include "backends/io/io.hpp"
#include "backends/io/waker.hpp"

namespace headgate::backends {

class Lookup {
 public:
  Lookup(asio::io_context& io, const std::string& host, std::uint16_t port, Waker& waker);
  ~Lookup();
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  bool done() const;
  const std::vector<asio::ip::tcp::endpoint>& addresses() const;  // empty: no such name

 private:
  struct Pending;  // shared with the resolver, which may outlive the Lookup
  std::shared_ptr<Pending> pending_;
  std::vector<asio::ip::tcp::endpoint> numeric_;
};

}  // namespace headgate::backends
