// What remains of a request when it has ended: its counters and its line in the access log.
#pragma once

#include "gateway/exchange.hpp"

namespace headgate::gateway {

void record_request(Exchange& x, Time ended);

}  // namespace headgate::gateway
