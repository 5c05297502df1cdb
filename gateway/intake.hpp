// Taking a request in: its head, what the head alone decides, its body, and the fields of the body that decide.
// Each step ends with nothing, or with the refusal that the caller gets instead.
#pragma once

#include <optional>

#include "gateway/exchange.hpp"
#include "gateway/refusal.hpp"

namespace headgate::gateway {

// Waits for the next request's head. False: the connection is over (a wire error has been answered).
backends::Task<bool> read_head(Exchange& x);

// Answers a connection that is not, or not yet, a request, and closes it.
backends::Task<> reject(Exchange& x, RefusalAnswer no);

// Path, method, key, headers: before a byte of the body is waited for.
std::optional<RefusalAnswer> check_head(Exchange& x);

// The whole body into the caller's buffer, behind the head, within limits.
using BodyRead = backends::Task<std::optional<RefusalAnswer>>;
BodyRead read_body(Exchange& x);

// Validates the body, finds the route, fills the Arrival.
std::optional<RefusalAnswer> check_body(Exchange& x, policies::Arrival& arrival);

// After an answer given with the body unread: takes a short rest in, or closes so that the caller can read the answer.
backends::Task<> leave_body(Exchange& x);

}  // namespace headgate::gateway
