#include "support/certificates.hpp"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <memory>
#include <stdexcept>

namespace headgate::support {

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

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

template <class Read>
auto parsed(const std::string& pem, Read read) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return read(bio.get(), nullptr, nullptr, nullptr);
}

void extend(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  if (extension == nullptr) throw std::runtime_error("a certificate's extension: " + value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

Identity make_identity(const Wanted& wanted) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  std::uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 86400L * wanted.from_days);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86400L * wanted.to_days);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(wanted.name.c_str()), -1,
                             -1, 0);
  Certificate issuer;
  Key issuer_key;
  if (wanted.signed_by != nullptr) {
    issuer.reset(parsed(wanted.signed_by->certificate, PEM_read_bio_X509));
    issuer_key.reset(parsed(wanted.signed_by->key, PEM_read_bio_PrivateKey));
  }
  X509* const by = issuer ? issuer.get() : certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(by));
  extend(certificate.get(), by, NID_basic_constraints, wanted.signed_by == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  if (wanted.name.find(' ') == std::string::npos) {
    extend(certificate.get(), by, NID_subject_alt_name,
           "DNS:" + wanted.name + (wanted.address_too ? ",IP:127.0.0.1" : ""));
  }
  X509_sign(certificate.get(), issuer_key ? issuer_key.get() : key.get(), EVP_sha256());
  const Bio certificate_text(BIO_new(BIO_s_mem())), key_text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate_text.get(), certificate.get());
  PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {text_of(certificate_text.get()), text_of(key_text.get())};
}

}  // namespace headgate::support
