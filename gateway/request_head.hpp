// What a request's head says: which operation, which id, which budgets.
#pragma once

#include <optional>
#include <string>

#include "gateway/exchange.hpp"
#include "gateway/refusal.hpp"

namespace headgate::gateway {

// Sets request_id: the caller's x-request-id if it is 1 to 128 of [A-Za-z0-9._-], else a new one.
void choose_request_id(Exchange& x);

// Sets request.operation from method and path, or refuses: 404, 405, 415.
std::optional<RefusalAnswer> find_operation(Exchange& x);

// x-headgate-* (HTTP.md), x-stainless-timeout, x-stainless-read-timeout, x-stainless-retry-count
// into request.budgets.
std::optional<RefusalAnswer> read_budgets(Exchange& x);

// The target without its query.
std::string_view path_of(std::string_view target);

}  // namespace headgate::gateway
