#include "policies/outcome.hpp"

namespace headgate::policies {

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
