// What callers are told with each Code: the word for programs, the status, and whether to send the request again.
// HTTP.md "Answers that Headgate makes itself" shows it to them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "policies/orders.hpp"

namespace headgate::policies {

enum class ShouldRetry : std::uint8_t {
  unsaid,
  no,
  first_time,  // by Answer::repeat_ok
};

struct AnswerCode {
  Code code{};
  std::string_view name;
  std::uint16_t status = 0;  // of as_received: when it cannot be shown as received
  bool refuses = true;       // decided before any backend worked
  ShouldRetry should_retry = ShouldRetry::no;
};

inline constexpr std::array<AnswerCode, 16> answer_codes{{
    {Code::model_not_found, "model_not_found", 404, true, ShouldRetry::no},
    {Code::no_healthy_backend, "no_healthy_backend", 503, true, ShouldRetry::first_time},
    {Code::queue_full, "queue_full", 503, true, ShouldRetry::first_time},
    {Code::deadline_unmeetable, "deadline_unmeetable", 503, true, ShouldRetry::first_time},
    {Code::deadline_exceeded, "deadline_exceeded", 504, true, ShouldRetry::no},
    {Code::as_received, "upstream_status", 502, false, ShouldRetry::unsaid},
    {Code::upstream_failed, "upstream_failed", 502, false, ShouldRetry::no},
    {Code::upstream_timeout, "upstream_timeout", 504, false, ShouldRetry::no},
    {Code::upstream_auth, "upstream_auth", 502, false, ShouldRetry::no},
    {Code::stream_cut, "stream_cut", 502, false, ShouldRetry::unsaid},
    {Code::no_socket, "upstream_socket", 503, true, ShouldRetry::first_time},
    {Code::requests_per_minute, "requests_per_minute", 429, true, ShouldRetry::first_time},
    {Code::tokens_per_minute, "tokens_per_minute", 429, true, ShouldRetry::first_time},
    {Code::concurrency, "concurrency", 429, true, ShouldRetry::first_time},
    {Code::request_too_large_for_limit, "request_too_large_for_limit", 429, true, ShouldRetry::no},
    {Code::cost_budget_unmeetable, "cost_budget_unmeetable", 402, true, ShouldRetry::no},
}};

constexpr const AnswerCode& answer_code(Code code) { return answer_codes[static_cast<std::size_t>(code)]; }

constexpr bool in_order(const decltype(answer_codes)& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].code) != i) return false;
  }
  return true;
}
static_assert(in_order(answer_codes), "a row is looked up by its place");

// The SDKs ignore longer advice and retry at once: over it they are told not to.
inline constexpr Nanos advice_longest = std::chrono::seconds(60);

}  // namespace headgate::policies
