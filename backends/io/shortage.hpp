// Running out of descriptors, memory or local ports: nobody else's fault, and over when something is given back.
#pragma once

#include <cerrno>

namespace headgate::backends {

inline bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == EADDRNOTAVAIL;
}

// The system gives the lowest free number: a new descriptor tells how many are in use. Of N, new callers are taken
// while min(64, N/8) stay free, and backends are dialled while min(16, N/16) do: for probes, the admin port and files.
// As the process's limit was at the first call.
int descriptors_for_callers();
int descriptors_for_backends();

}  // namespace headgate::backends
