#include "policies/retry.hpp"

namespace headgate::policies {

void RetryBudget::configure(const RetryOptions& options) {
  per_success_ = options.budget_per_success;
  max_ = options.budget_max;
  credit_ = std::min(credit_ < 0 ? options.budget_initial : credit_, max_);
}

bool RetryBudget::withdraw() {
  // Ten deposits of 0.1 do not add up to 1 exactly.
  constexpr double rounding = 1e-9;
  if (credit_ < 1 - rounding) return false;
  credit_ = std::max(0.0, credit_ - 1);
  return true;
}

void Evacuation::died(std::uint32_t in_flight, bool half_of_pool_healthy) {
  if (granted_ || !half_of_pool_healthy) return;
  granted_ = true;
  left_ = in_flight;
}

bool Evacuation::take() {
  if (left_ == 0) return false;
  --left_;
  return true;
}

bool never_delivered(End end) { return end == End::connect || end == End::unsent; }

bool looks_dead(End end) {
  return end == End::connect || end == End::unsent || end == End::sent_no_answer || end == End::truncated ||
         end == End::stalled;
}

bool may_try_again(const RetryOptions& options, const Outcome& outcome, std::uint32_t attempts) {
  const Fault fault = fault_of(outcome);
  if (fault == Fault::none || fault == Fault::callers) return false;
  if (attempts >= options.attempts_max) return false;
  return options.after_delivery || never_delivered(outcome.end);
}

Nanos wait_before_same(const RetryOptions& options, Nanos advice, std::uint32_t n, std::uint64_t bits) {
  if (advice > Nanos{0}) return advice;
  Nanos most = std::min(options.backoff, options.backoff_max);
  for (std::uint32_t i = 0; i < n && most < options.backoff_max; ++i) most = std::min(most * 2, options.backoff_max);
  return Nanos{static_cast<std::int64_t>(unit(bits) * static_cast<double>(most.count()))};
}

Code answer_of(const Outcome& outcome, bool committed) {
  if (committed) return Code::stream_cut;
  switch (outcome.end) {
    case End::status:
      return fault_of(outcome) == Fault::ours ? Code::upstream_auth : Code::as_received;
    case End::first_byte_late:
    case End::first_token_late:
    case End::stalled:
    case End::out_of_time:
      return Code::upstream_timeout;
    case End::no_socket:
      return Code::no_socket;
    default:
      return Code::upstream_failed;
  }
}

}  // namespace headgate::policies
