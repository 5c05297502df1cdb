#include "backends/io/tls_context.hpp"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

#include "backends/io/tls_session.hpp"

namespace headgate::backends {

namespace {

template <auto free>
struct Free {
  template <class T>
  void operator()(T* what) const {
    free(what);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

constexpr std::array<unsigned char, 9> http_1_1{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

std::string last_error() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason != nullptr ? reason : "unknown error";
}

Bio reading(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

// A question on the terminal would hold up the process.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

// The end of the text is no error.
bool at_end() {
  const bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return end;
}

TlsContext make_context(const SSL_METHOD* method) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(method), SSL_CTX_free);
  if (!context) throw TlsProblem("OpenSSL: " + last_error());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);  // a record's head and body in one receive
  return context;
}

// http/1.1, or nothing in common. A caller that names no protocol at all is not asked.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in, unsigned in_size,
                    void*) {
  unsigned char* found = nullptr;
  const int how = SSL_select_next_proto(&found, out_size, http_1_1.data(), http_1_1.size(), in, in_size);
  *out = found;
  return how == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::int64_t unix_time_of(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<std::int64_t>(::timegm(&parts)) : 0;
}

bool is_address(const std::string& name) {
  in6_addr room{};
  return ::inet_pton(AF_INET, name.c_str(), &room) == 1 || ::inet_pton(AF_INET6, name.c_str(), &room) == 1;
}

}  // namespace

TlsCertificate::TlsCertificate(const std::string& certificate_pem, const std::string& key_pem)
    : context_(make_context(TLS_server_method())) {
  bool asked = false;
  const Bio chain = reading(certificate_pem), key_text = reading(key_pem);
  const Certificate own(PEM_read_bio_X509_AUX(chain.get(), nullptr, no_passphrase, &asked));
  if (!own) throw TlsProblem(at_end() ? "holds no certificate in PEM form" : "holds a certificate that cannot be read");
  if (SSL_CTX_use_certificate(context_.get(), own.get()) != 1)
    throw TlsProblem("holds a certificate that cannot be used: " + last_error());
  for (;;) {
    const Certificate next(PEM_read_bio_X509(chain.get(), nullptr, no_passphrase, &asked));
    if (!next) break;
    SSL_CTX_add1_chain_cert(context_.get(), next.get());
  }
  if (!at_end()) throw TlsProblem("holds a chain of which a part cannot be read");
  const Key key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, no_passphrase, &asked));
  if (!key && asked) throw KeyProblem("holds a key under a passphrase, must be a plain one");
  if (!key) throw KeyProblem(at_end() ? "holds no key in PEM form" : "holds a key that cannot be read");
  if (SSL_CTX_use_PrivateKey(context_.get(), key.get()) != 1 || SSL_CTX_check_private_key(context_.get()) != 1) {
    ERR_clear_error();
    throw KeyProblem("holds a key that does not belong to the certificate");
  }
  expires_unix_s_ = unix_time_of(X509_get0_notAfter(own.get()));
  static constexpr std::array<unsigned char, 8> id{'h', 'e', 'a', 'd', 'g', 'a', 't', 'e'};
  SSL_CTX_set_session_id_context(context_.get(), id.data(), id.size());
  SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_OFF);  // callers keep their tickets
  SSL_CTX_set_alpn_select_cb(context_.get(), choose_protocol, nullptr);
}

TlsContext tls_trust(const std::string& authorities_pem, bool verify) {
  TlsContext context = make_context(TLS_client_method());
  SSL_CTX_set_verify(context.get(), verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  X509_STORE* store = SSL_CTX_get_cert_store(context.get());
  if (authorities_pem.empty()) {
    if (verify) SSL_CTX_set_default_verify_paths(context.get());
  } else {
    const Bio text = reading(authorities_pem);
    bool asked = false, any = false;
    for (;;) {
      const Certificate one(PEM_read_bio_X509(text.get(), nullptr, no_passphrase, &asked));
      if (!one) break;
      if (X509_STORE_add_cert(store, one.get()) != 1)
        throw TlsProblem("holds a certificate that cannot be used: " + last_error());
      any = true;
    }
    if (!at_end()) throw TlsProblem("holds a certificate that cannot be read");
    if (!any) throw TlsProblem("holds no certificate in PEM form");
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);  // what stands in the file is trusted, be it no root
  }
  SSL_CTX_set_alpn_protos(context.get(), http_1_1.data(), http_1_1.size());
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context.get(),
                          [](SSL* ssl, SSL_SESSION* session) { return TlsSession::ticket_came(ssl, session); });
  ERR_clear_error();
  return context;
}

void TlsPeer::prepare(SSL* connection) const {
  if (is_address(name_)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection), name_.c_str());
    return;
  }
  SSL_set_tlsext_host_name(connection, name_.c_str());
  SSL_set_hostflags(connection, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  SSL_set1_host(connection, name_.c_str());
}

TlsTickets::~TlsTickets() {
  for (auto& [server, kept] : by_server_) clear(kept);
}

void TlsTickets::clear(Kept& kept) {
  for (std::size_t i = 0; i < kept.count; ++i) SSL_SESSION_free(kept.sessions[i]);
  kept.count = 0;
}

void TlsTickets::keep(const std::shared_ptr<const TlsPeer>& server, SSL_SESSION* session) {
  auto found = by_server_.find(server.get());
  if (found == by_server_.end()) {
    if (by_server_.size() == servers_max) return SSL_SESSION_free(session);
    found = by_server_.try_emplace(server.get()).first;
    found->second.server = server;
  }
  Kept& kept = found->second;
  if (kept.count == kept_max) {
    SSL_SESSION_free(kept.sessions.front());
    std::copy(kept.sessions.begin() + 1, kept.sessions.end(), kept.sessions.begin());
    --kept.count;
  }
  kept.sessions[kept.count++] = session;
}

void TlsTickets::offer(const TlsPeer& server, SSL* connection) {
  const auto found = by_server_.find(&server);
  if (found == by_server_.end() || found->second.count == 0) return;
  Kept& kept = found->second;
  SSL_SESSION* newest = kept.sessions[kept.count - 1];
  SSL_set_session(connection, newest);  // has a reference of its own
  if (kept.count == 1) return;
  SSL_SESSION_free(newest);
  --kept.count;
}

void TlsTickets::drop(const TlsPeer& server) {
  const auto found = by_server_.find(&server);
  if (found != by_server_.end()) clear(found->second);
}

void TlsTickets::sweep() {
  for (auto entry = by_server_.begin(); entry != by_server_.end();) {
    if (entry->second.server.use_count() > 1) {
      ++entry;
    } else {
      clear(entry->second);
      entry = by_server_.erase(entry);
    }
  }
}

}  // namespace headgate::backends
