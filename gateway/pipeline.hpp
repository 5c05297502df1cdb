// The steps of a request, in order: head, body, Dispatcher, attempts, answer, record.
#pragma once

#include "gateway/exchange.hpp"

namespace headgate::gateway {

// The head is complete in the caller's buffer. Afterwards x.close_after says whether the connection can go on.
backends::Task<> serve_request(Exchange& x);

}  // namespace headgate::gateway
