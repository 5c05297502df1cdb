// Pages in browsers that may call (the Fetch standard, "CORS protocol"): their preflight needs no key, and every answer
// to them, errors too, says that they may read it. Off while cors.origins is empty.
#pragma once

#include <string>

#include "gateway/exchange.hpp"

namespace headgate::gateway {

// Sets request.page_may_read.
void find_origin(Exchange& x);

// OPTIONS with Origin and Access-Control-Request-Method, while cors is configured.
bool is_preflight(const Exchange& x);

void append_cors_lines(std::string& out, const Exchange& x);
void write_preflight_answer(Exchange& x);

}  // namespace headgate::gateway
