// TLS put round plain test peers by OpenSSL's own library calls: each connection to port() is carried to `to`, plain on
// one side and TLS on the other.
//
//   TlsTunnel server(TlsTunnel::terminate, upstream.port(), {.identity = server_identity});  // gateway -> TLS ->
//   upstream TlsTunnel client(TlsTunnel::originate, gateway.port(), {.trusted = ca.certificate});     // RawClient ->
//   TLS -> gateway RawClient caller(client.port());
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/certificates.hpp"
#include "support/socket.hpp"

namespace headgate::support {

class TlsTunnel {
 public:
  enum Kind : std::uint8_t { terminate, originate };
  struct Options {
    Identity identity{};             // terminate: shown
    std::string trusted{};           // originate: PEM; empty: anybody
    std::string name = "localhost";  // originate: asked for and expected
  };
  TlsTunnel(Kind kind, std::uint16_t to, Options options);
  ~TlsTunnel();
  TlsTunnel(const TlsTunnel&) = delete;
  TlsTunnel& operator=(const TlsTunnel&) = delete;

  std::uint16_t port() const { return port_; }
  std::size_t handshakes() const { return handshakes_; }  // that succeeded
  std::size_t resumed() const { return resumed_; }        // of them, with an earlier session
  std::vector<std::string> names_asked() const;           // terminate: server names, "" for none

 private:
  void accept();
  void carry(Socket near);

  const Kind kind_;
  const std::uint16_t to_;
  const Options options_;
  void* context_;
  Socket listener_;
  std::uint16_t port_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> handshakes_{0}, resumed_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
  std::list<std::thread> carriers_;
  std::thread acceptor_;
};

}  // namespace headgate::support
