// Callers of a simulation: how often they send again what was refused or failed, as the official OpenAI SDKs do
// (openai-python, _base_client.py: _should_retry, _calculate_retry_timeout), and how long they wait for a first word.
#pragma once

#include <cstdint>

#include "policies/answer_codes.hpp"

namespace headgate::loadtest {

struct Callers {
  std::uint32_t retries = 0;      // the SDKs' default is 2
  std::uint64_t seed = 1;         // of the part that is taken off a pause
  Nanos patience = Nanos::max();  // from the first send; who has no content by then leaves
};

// Whether the answer makes an SDK send again, were a retry left: by x-should-retry, else by the status (408, 409, 429,
// 5xx). `received`: the backend's status, of an answer as_received.
bool would_retry(const policies::Answer& answer, std::uint16_t received);

// Before retry number n (from 0): the advice if it is in (0, 60 s], else 0.5 s x 2^n, at most 8 s, of which up to a
// quarter is taken off. u in [0, 1).
Nanos pause_before_retry(std::uint32_t n, Nanos advice, double u);

}  // namespace headgate::loadtest
