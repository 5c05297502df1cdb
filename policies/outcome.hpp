// How an attempt ended in a word, and whose fault it was.
//
// Whose fault an attempt's outcome is (HTTP.md "Whose fault it was"). From it follow failover, health and metrics:
//   none     nobody's: a complete answer, or an attempt that was called off (cancelled, out_of_time) or
//            never made (no_socket)
//   callers  400 404 405 409 413 415 422 and any other 4xx not named here; under forward_client_auth also 401 and 403:
//            relayed as received, never a failover, never a fault of the endpoint
//   ours     401 402 403 407: our own credentials; failover, no fault of the endpoint
//   load     429 503 529, and an in-band error that says overloaded: the endpoint cools down; failover
//   hard     every other status but 200, transport, malformed, truncated, stalled, late: failover, counts to ejection
// Failed-attempt metrics count ours, load and hard.
#pragma once

#include <cstdint>
#include <string_view>

#include "policies/calls.hpp"

namespace headgate::policies {

std::string_view name_of(End end);  // "connect", "first_byte_late"

enum class Fault : std::uint8_t { none, callers, ours, load, hard };

// For a final status as it arrives in an answer's head.
Fault fault_of_status(std::uint16_t status, bool forward_client_auth);

// For an attempt that ended. End::status is by definition not the caller's: 401 and 403 there are ours.
// End::ok with a 4xx is the caller's; with anything else it is nobody's.
Fault fault_of(const Outcome& outcome);

// End::ok without a caller's error: what deposits retry credit and counts as a success of the endpoint.
bool succeeded(const Outcome& outcome);

}  // namespace headgate::policies
