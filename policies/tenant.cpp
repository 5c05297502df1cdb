#include "policies/tenant.hpp"

namespace headgate::policies {
namespace {

constexpr Nanos another_place = std::chrono::seconds(1);  // nobody knows when one is free

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

std::optional<Answer> Tenant::over(Time now, std::uint64_t tokens) const {
  if (const auto limit = limits_.tokens_per_minute; limit && !Gcra::fits(*limit, tokens))
    return Answer{.code = Code::request_too_large_for_limit, .value = number(tokens), .limit = number(*limit)};
  if (const auto limit = limits_.concurrency; limit && open_ >= *limit)
    return Answer{Code::concurrency, another_place, true, open_, *limit};
  if (const auto limit = limits_.requests_per_minute) {
    if (const Nanos wait = requests_.wait(now, *limit, 1); wait > Nanos{0})
      return Answer{Code::requests_per_minute, wait, true, number(*limit), number(*limit)};
  }
  if (const auto limit = limits_.tokens_per_minute) {
    if (const Nanos wait = tokens_.wait(now, *limit, tokens); wait > Nanos{0})
      return Answer{Code::tokens_per_minute, wait, true, number(tokens), number(tokens_.remaining(now, *limit))};
  }
  return std::nullopt;
}

void Tenant::take(Time now, std::uint64_t tokens) {
  ++open_;
  if (limits_.requests_per_minute) requests_.take(now, *limits_.requests_per_minute, 1);
  if (limits_.tokens_per_minute) tokens_.take(now, *limits_.tokens_per_minute, tokens);
}

void Tenant::ended(Time now, std::int64_t tokens) {
  --open_;
  if (limits_.tokens_per_minute) tokens_.correct(now, *limits_.tokens_per_minute, tokens);
}

RateState Tenant::rates(Time now) const {
  RateState state;
  if (const auto limit = limits_.requests_per_minute)
    state.requests = {*limit, requests_.remaining(now, *limit), requests_.full_in(now)};
  if (const auto limit = limits_.tokens_per_minute)
    state.tokens = {*limit, tokens_.remaining(now, *limit), tokens_.full_in(now)};
  return state;
}

}  // namespace headgate::policies
