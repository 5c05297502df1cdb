// What the gateway's own words cost: an access line, a refusal as a whole answer.
#include <benchmark/benchmark.h>

#include <string>

#include "gateway/access_log.hpp"
#include "gateway/refusal.hpp"

namespace headgate::gateway {
namespace {

void AccessLineOfARefusal(benchmark::State& state) {
  AccessEntry entry;
  entry.at = std::chrono::sys_days(std::chrono::year(2026) / 3 / 4) + std::chrono::milliseconds(12'345'678);
  entry.request_id = "req_0123456789a";
  entry.client = "127.0.0.1";
  entry.key_name = "team";
  entry.method = "POST";
  entry.path = "/v1/chat/completions";
  entry.route = "full";
  entry.status = 503;
  entry.bytes = 512;
  entry.total = std::chrono::microseconds(15);
  entry.outcome = Ending::refused;
  entry.cause = "queue_full";
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_access_line(out, entry);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(AccessLineOfARefusal);

void RefusalOfAFullQueue(benchmark::State& state) {
  const RefusalAnswer answer{.refusal = Refusal::queue_full,
                             .value = 4,
                             .limit = 4,
                             .retry_after = std::chrono::milliseconds(1234),
                             .repeat_ok = true,
                             .request_id = "req_0123456789a"};
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_refusal_head(out, answer);
    append_refusal_body(out, answer);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(RefusalOfAFullQueue);

}  // namespace
}  // namespace headgate::gateway
