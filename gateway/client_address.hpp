// Who a request comes from: the connection's address, or, when that is a trusted proxy's, the last one in
// X-Forwarded-For that is not. Sets request.client.
#pragma once

#include "gateway/exchange.hpp"

namespace headgate::gateway {

void find_client(Exchange& x);

}  // namespace headgate::gateway
