#include "support/tls_tunnel.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <stdexcept>

#include "support/waiting.hpp"

namespace headgate::support {

namespace {

void use_identity(SSL_CTX* context, const Identity& identity) {
  BIO* certificate = BIO_new_mem_buf(identity.certificate.data(), static_cast<int>(identity.certificate.size()));
  BIO* key = BIO_new_mem_buf(identity.key.data(), static_cast<int>(identity.key.size()));
  X509* own = PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
  EVP_PKEY* own_key = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(context, own);
  SSL_CTX_use_PrivateKey(context, own_key);
  X509_free(own);
  EVP_PKEY_free(own_key);
  BIO_free(certificate);
  BIO_free(key);
  constexpr std::array<unsigned char, 4> id{'t', 'e', 's', 't'};
  SSL_CTX_set_session_id_context(context, id.data(), id.size());
}

void trust(SSL_CTX* context, const std::string& pem) {
  BIO* text = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* one = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one);
  X509_free(one);
  BIO_free(text);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
}

bool send_plain(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::send(fd, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};
      ::poll(&room, 1, 1000);
      continue;
    }
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// One SSL call until it is done or failed.
template <class Call>
int insist(SSL* ssl, int fd, const std::atomic<bool>& stopping, Call call) {
  while (!stopping) {
    ERR_clear_error();
    const int result = call();
    if (result > 0) return result;
    const int error = SSL_get_error(ssl, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return result;
    pollfd news{fd, static_cast<short>(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), 0};
    ::poll(&news, 1, 100);
  }
  return -1;
}

}  // namespace

TlsTunnel::TlsTunnel(Kind kind, std::uint16_t to, Options options)
    : kind_(kind),
      to_(to),
      options_(std::move(options)),
      context_(SSL_CTX_new(kind == terminate ? TLS_server_method() : TLS_client_method())),
      listener_(listen_on_loopback()),
      port_(listener_.port()) {
  auto* context = static_cast<SSL_CTX*>(context_);
  ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL, and peers go away
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (kind_ == terminate) use_identity(context, options_.identity);
  if (kind_ == originate && !options_.trusted.empty()) trust(context, options_.trusted);
  acceptor_ = std::thread([this] { accept(); });
}

TlsTunnel::~TlsTunnel() {
  stopping_ = true;
  acceptor_.join();
  for (std::thread& carrier : carriers_) carrier.join();
  SSL_CTX_free(static_cast<SSL_CTX*>(context_));
}

std::vector<std::string> TlsTunnel::names_asked() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

void TlsTunnel::accept() {
  while (!stopping_) {
    pollfd news{listener_.descriptor(), POLLIN, 0};
    if (::poll(&news, 1, 20) <= 0) continue;
    Socket near = accept_from(listener_);
    if (near.descriptor() < 0) continue;
    carriers_.emplace_back([this, socket = std::make_shared<Socket>(std::move(near))] { carry(std::move(*socket)); });
  }
}

void TlsTunnel::carry(Socket near) try {
  Socket far = connect_to_loopback(to_);
  const int secret = kind_ == terminate ? near.descriptor() : far.descriptor();
  const int plain = kind_ == terminate ? far.descriptor() : near.descriptor();
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(static_cast<SSL_CTX*>(context_)), SSL_free);
  SSL_set_fd(ssl.get(), secret);
  if (kind_ == originate) {
    SSL_set_tlsext_host_name(ssl.get(), options_.name.c_str());
    if (!options_.trusted.empty()) SSL_set1_host(ssl.get(), options_.name.c_str());
  }
  const int done = insist(ssl.get(), secret, stopping_,
                          [&] { return kind_ == terminate ? SSL_accept(ssl.get()) : SSL_connect(ssl.get()); });
  {
    const std::lock_guard lock(mutex_);
    const char* const name = SSL_get_servername(ssl.get(), TLSEXT_NAMETYPE_host_name);
    if (kind_ == terminate) names_.emplace_back(name != nullptr ? name : "");
  }
  if (done != 1) return;
  ++handshakes_;
  if (SSL_session_reused(ssl.get()) == 1) ++resumed_;
  std::array<char, 16384> bytes;
  bool plain_open = true;
  while (!stopping_) {
    std::array<pollfd, 2> news{{{secret, POLLIN, 0}, {plain_open ? plain : -1, POLLIN, 0}}};
    if (SSL_pending(ssl.get()) == 0 && ::poll(news.data(), 2, 20) <= 0) continue;
    if (SSL_pending(ssl.get()) > 0 || news[0].revents != 0) {
      ERR_clear_error();
      const int n = SSL_read(ssl.get(), bytes.data(), bytes.size());
      if (n > 0 && !send_plain(plain, bytes.data(), static_cast<std::size_t>(n))) return;
      const int error = n > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl.get(), n);
      if (n <= 0 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
        if (error == SSL_ERROR_ZERO_RETURN) ::shutdown(plain, SHUT_WR);
        return;
      }
    }
    if (news[1].revents != 0) {
      const ssize_t n = ::recv(plain, bytes.data(), bytes.size(), 0);
      if (n < 0 && errno == EAGAIN) continue;
      if (n < 0) return;
      if (n == 0) {
        plain_open = false;
        SSL_shutdown(ssl.get());  // a clean end
        ::shutdown(secret, SHUT_WR);
        continue;
      }
      for (ssize_t at = 0; at < n;) {
        const int taken = insist(ssl.get(), secret, stopping_,
                                 [&] { return SSL_write(ssl.get(), bytes.data() + at, static_cast<int>(n - at)); });
        if (taken <= 0) return;
        at += taken;
      }
    }
  }
} catch (const std::exception&) {  // nobody listens there: the near side sees the end
}

}  // namespace headgate::support
