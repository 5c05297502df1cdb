#include "policies/outcome.hpp"

#include <array>

namespace headgate::policies {

std::string_view name_of(End end) {
  constexpr std::array<std::string_view, 14> names{
      "ok",        "connect",   "unsent",          "sent_no_answer",   "status",  "in_band_error",
      "malformed", "truncated", "first_byte_late", "first_token_late", "stalled", "out_of_time",
      "cancelled", "no_socket"};
  return names[static_cast<std::size_t>(end)];
}

Fault fault_of_status(std::uint16_t status, bool forward_client_auth) {
  switch (status) {
    case 200:
      return Fault::none;
    case 401:
    case 403:
      return forward_client_auth ? Fault::callers : Fault::ours;
    case 402:
    case 407:
      return Fault::ours;
    case 429:
    case 503:
    case 529:
      return Fault::load;
    default:
      return status >= 400 && status < 500 ? Fault::callers : Fault::hard;
  }
}

Fault fault_of(const Outcome& outcome) {
  switch (outcome.end) {
    case End::ok:
      return outcome.status >= 400 && outcome.status < 500 ? Fault::callers : Fault::none;
    case End::out_of_time:
    case End::cancelled:
    case End::no_socket:
      return Fault::none;
    case End::in_band_error:
      return outcome.overloaded ? Fault::load : Fault::hard;
    case End::status: {
      const Fault fault = fault_of_status(outcome.status, false);
      return fault == Fault::none || fault == Fault::callers ? Fault::hard : fault;
    }
    case End::connect:
    case End::unsent:
    case End::sent_no_answer:
    case End::malformed:
    case End::truncated:
    case End::first_byte_late:
    case End::first_token_late:
    case End::stalled:
      return Fault::hard;
  }
  return Fault::hard;
}

bool succeeded(const Outcome& outcome) { return outcome.end == End::ok && fault_of(outcome) == Fault::none; }

}  // namespace headgate::policies
