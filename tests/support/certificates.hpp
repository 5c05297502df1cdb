// Certificates made on the spot (P-256): nothing secret lies in the tree and none expires there.
//
//   const Identity ca = make_identity({.name = "test authority"});
//   const Identity server = make_identity({.name = "localhost", .signed_by = &ca});
//   TextFile certificate(server.certificate), key(server.key);
#pragma once

#include <string>

namespace headgate::support {

struct Identity {
  std::string certificate, key;  // PEM
};

struct Wanted {
  std::string name = "localhost";  // and the address 127.0.0.1, unless it is the only name
  bool address_too = true;
  const Identity* signed_by = nullptr;  // null: by itself
  int from_days = -1, to_days = 30;     // from now
};

Identity make_identity(const Wanted& wanted);

}  // namespace headgate::support
