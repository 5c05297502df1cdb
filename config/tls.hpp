// The PEM files that the configuration names, read and understood.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "backends/io/tls_context.hpp"
#include "config/options.hpp"

namespace headgate::config {

// field: the one of its options that is at fault. what(): that field's value and what is wrong with it.
struct TlsFileProblem : std::runtime_error {
  TlsFileProblem(const char* field_, const std::string& message) : std::runtime_error(message), field(field_) {}
  const char* field;
};

// Null: no TLS. Throws TlsFileProblem.
std::shared_ptr<const backends::TlsCertificate> load_certificate(const ListenTlsOptions& options);

// Whom the pool's https backends are trusted by. Throws TlsFileProblem.
backends::TlsContext load_trust(const PoolTlsOptions& options);

}  // namespace headgate::config
