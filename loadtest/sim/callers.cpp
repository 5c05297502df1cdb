#include "loadtest/sim/callers.hpp"

#include <algorithm>
#include <cmath>

namespace headgate::loadtest {

using policies::ShouldRetry;

bool would_retry(const policies::Answer& answer, std::uint16_t received) {
  const policies::AnswerCode& row = policies::answer_code(answer.code);
  if (row.should_retry == ShouldRetry::no) return false;
  if (row.should_retry == ShouldRetry::first_time)
    return answer.repeat_ok && answer.retry_after <= policies::advice_longest;
  const std::uint16_t status = answer.code == policies::Code::as_received ? received : row.status;
  return status == 408 || status == 409 || status == 429 || status >= 500;
}

Nanos pause_before_retry(std::uint32_t n, Nanos advice, double u) {
  if (advice > Nanos(0) && advice <= policies::advice_longest)
    return std::chrono::ceil<std::chrono::milliseconds>(advice);  // as retry-after-ms says it
  const double seconds = std::min(0.5 * std::pow(2.0, n), 8.0) * (1 - 0.25 * u);
  return Nanos(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace headgate::loadtest
