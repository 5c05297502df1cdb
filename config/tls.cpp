#include "config/tls.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "config/node.hpp"

namespace headgate::config {

namespace {

constexpr std::size_t file_bytes_max = 1 << 20;

std::string text_of(const char* field, const std::string& name) {
  errno = 0;
  std::ifstream file(name, std::ios::binary);
  std::string text(file_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && errno != 0)) {
    throw TlsFileProblem(field,
                         "is " + in_quotes(name) + ", which cannot be read: " + std::generic_category().message(errno));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > file_bytes_max) throw TlsFileProblem(field, "is " + in_quotes(name) + ", which is over 1 MiB");
  return text;
}

}  // namespace

std::shared_ptr<const backends::TlsCertificate> load_certificate(const ListenTlsOptions& options) {
  if (options.certificate.empty() && options.key.empty()) return nullptr;
  if (options.certificate.empty()) throw TlsFileProblem("certificate", "is missing, must be set because \"key\" is");
  if (options.key.empty()) throw TlsFileProblem("key", "is missing, must be set because \"certificate\" is");
  const std::string certificate = text_of("certificate", options.certificate), key = text_of("key", options.key);
  try {
    return std::make_shared<const backends::TlsCertificate>(certificate, key);
  } catch (const backends::TlsCertificate::KeyProblem& wrong) {
    throw TlsFileProblem("key", "is " + in_quotes(options.key) + ", which " + wrong.what());
  } catch (const backends::TlsProblem& wrong) {
    throw TlsFileProblem("certificate", "is " + in_quotes(options.certificate) + ", which " + wrong.what());
  }
}

backends::TlsContext load_trust(const PoolTlsOptions& options) {
  const std::string authorities = options.ca.empty() ? "" : text_of("ca", options.ca);
  try {
    if (!options.ca.empty() && authorities.empty()) throw backends::TlsProblem("is empty");
    return backends::tls_trust(authorities, options.verify);
  } catch (const backends::TlsProblem& wrong) {
    throw TlsFileProblem("ca", "is " + in_quotes(options.ca) + ", which " + wrong.what());
  }
}

}  // namespace headgate::config
