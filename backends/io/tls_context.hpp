// What TLS connections share: our certificate, whom we trust, sessions to take up again. Read once from PEM texts; a
// connection holds on to what it began with, so that new files are a matter of new objects.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

struct ssl_ctx_st;
struct ssl_session_st;
struct ssl_st;

namespace headgate::backends {

// What a text in PEM form lacks; what() is the rest of a sentence that began with the file's name.
struct TlsProblem : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using TlsContext = std::shared_ptr<ssl_ctx_st>;

// A certificate with its chain and key, to be shown to callers. Any thread.
class TlsCertificate {
 public:
  struct KeyProblem : TlsProblem {  // the certificate is good, the key is not or belongs to another one
    using TlsProblem::TlsProblem;
  };
  TlsCertificate(const std::string& certificate_pem, const std::string& key_pem);  // throws TlsProblem

  std::int64_t expires_unix_s() const { return expires_unix_s_; }
  ssl_ctx_st* context() const { return context_.get(); }

 private:
  TlsContext context_;
  std::int64_t expires_unix_s_ = 0;
};

// Whom a certificate must be signed by: a file of authorities, or the system's.
TlsContext tls_trust(const std::string& authorities_pem, bool verify);  // empty: the system's; throws TlsProblem

// A server that we speak TLS to: the name or address that its certificate must be for. Any thread.
class TlsPeer {
 public:
  TlsPeer(TlsContext trust, std::string name) : trust_(std::move(trust)), name_(std::move(name)) {}
  void prepare(ssl_st* connection) const;  // server name and whom to expect
  const std::string& name() const { return name_; }
  const TlsContext& trust() const { return trust_; }

 private:
  TlsContext trust_;
  std::string name_;
};

// Sessions that servers gave us, for shorter handshakes: a few per server, those of the last ones used. Of one worker;
// outlives its connections.
class TlsTickets {
 public:
  static constexpr std::size_t kept_max = 4;        // per server; the oldest goes first
  static constexpr std::size_t servers_max = 4096;  // more are not kept

  TlsTickets() = default;
  ~TlsTickets();
  TlsTickets(const TlsTickets&) = delete;
  TlsTickets& operator=(const TlsTickets&) = delete;

  void keep(const std::shared_ptr<const TlsPeer>& server, ssl_session_st* session);  // takes it over
  // Makes the connection try the newest. One that is not the last is used once, as TLS 1.3 would have it.
  void offer(const TlsPeer& server, ssl_st* connection);
  void drop(const TlsPeer& server);  // none of them is to be tried again
  void sweep();                      // those of servers that nobody else knows any more

 private:
  struct Kept {
    std::shared_ptr<const TlsPeer> server;
    std::array<ssl_session_st*, kept_max> sessions{};
    std::size_t count = 0;
  };
  static void clear(Kept& kept);
  std::unordered_map<const TlsPeer*, Kept> by_server_;
};

}  // namespace headgate::backends
