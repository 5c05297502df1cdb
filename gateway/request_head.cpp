#include "gateway/request_head.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "gateway/cors.hpp"
#include "gateway/models.hpp"
#include "policies/base/random.hpp"

namespace headgate::gateway {

namespace {

struct Endpoint {
  std::string_view path, method;
  Operation operation;
};
constexpr std::array<Endpoint, 6> endpoints{{
    {"/v1/chat/completions", "POST", Operation::chat},
    {"/v1/completions", "POST", Operation::completions},
    {"/v1/embeddings", "POST", Operation::embeddings},
    {"/v1/models", "GET", Operation::models},
    {"/healthz", "GET", Operation::healthz},
    {"/readyz", "GET", Operation::readyz},
}};

bool plain_id(std::string_view id) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), allowed);
}

// Deadlines over a day are clamped to it: out of range is not an error.
constexpr std::uint64_t deadline_ms_max = 86'400'000;

struct StatedInMs {
  std::string_view name, message;
  Time Budgets::*by;
};
constexpr std::array<StatedInMs, 2> stated_in_ms{{
    {"x-headgate-deadline-ms", "x-headgate-deadline-ms must be a whole number of milliseconds", &Budgets::deadline},
    {"x-headgate-ttft-ms", "x-headgate-ttft-ms must be a whole number of milliseconds", &Budgets::content_by},
}};

struct StatedAsNumber {
  std::string_view name, message;
  double Budgets::*by;
  double most;
};
constexpr std::array<StatedAsNumber, 2> stated_as_number{{
    {"x-headgate-max-cost-usd", "x-headgate-max-cost-usd must be a number from 0 up, such as 0.01",
     &Budgets::max_cost_usd, policies::unlimited_usd},
    {"x-headgate-min-quality", "x-headgate-min-quality must be a number from 0 to 1", &Budgets::min_quality, 1},
}};

constexpr std::string_view class_header = "x-headgate-class";

// One that is too large is the largest there is.
bool read_whole_number(std::string_view text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc::result_out_of_range) out = std::numeric_limits<std::uint64_t>::max();
  return end == text.data() + text.size() && error != std::errc::invalid_argument && !text.empty();
}

// A decimal number from 0 up, without an exponent.
bool read_number(std::string_view text, double& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, std::chars_format::fixed);
  return error == std::errc() && end == text.data() + text.size() && out >= 0 &&
         out <= std::numeric_limits<double>::max();
}

// Seconds as the SDKs write them ("600", "0.5"); malformed or absurd ones count as absent.
Nanos read_seconds(std::string_view text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds > 0) || seconds > 86'400)
    return Nanos::max();
  return std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(seconds));
}

RefusalAnswer method_not_allowed(std::string_view method, std::string_view allow) {
  return {.refusal = Refusal::method_not_allowed, .detail = method, .allow = allow};
}

}  // namespace

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

void choose_request_id(Exchange& x) {
  for (const wire::Field& field : x.head.fields) {
    if (field.id != wire::Name::x_request_id || !plain_id(field.value)) continue;
    x.request_id.assign(field.value);
    return;
  }
  static constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuv";
  x.request_id.assign("req_");
  std::uint64_t bits = x.shard.next_id_bits();
  for (int i = 0; i < 11; ++i, bits >>= 5) x.request_id.push_back(digits[bits & 31]);
}

std::optional<RefusalAnswer> find_operation(Exchange& x) {
  const std::string_view path = path_of(x.head.target), method = x.head.method;
  const Endpoint* found = nullptr;
  for (const Endpoint& endpoint : endpoints) {
    if (endpoint.path == path) found = &endpoint;
  }
  if (found == nullptr) {
    if (!path.starts_with("/v1/models/") || path.size() == std::string_view("/v1/models/").size()) {
      return RefusalAnswer{.refusal = Refusal::not_found, .detail = path};
    }
    x.request.operation = is_preflight(x) ? Operation::preflight : Operation::model;
    if (x.request.operation == Operation::preflight) return std::nullopt;
    if (method != "GET") return method_not_allowed(method, "GET");
    return std::nullopt;
  }
  x.request.operation = found->operation;
  if (is_preflight(x)) {
    x.request.operation = Operation::preflight;
    return std::nullopt;
  }
  if (method != found->method) return method_not_allowed(method, found->method);
  if (found->method == "POST") {
    for (const wire::Field& field : x.head.fields) {
      if (field.id == wire::Name::content_encoding && !wire::equals_ignoring_case(field.value, "identity")) {
        return RefusalAnswer{.refusal = Refusal::unsupported_encoding, .detail = field.value};
      }
    }
  }
  return std::nullopt;
}

std::optional<RefusalAnswer> read_budgets(Exchange& x) {
  Budgets& budgets = x.request.budgets;
  for (const wire::Field& field : x.head.fields) {
    if (field.id == wire::Name::x_headgate_any) {
      for (const auto& [name, message, by] : stated_in_ms) {
        if (!wire::equals_ignoring_case(field.name, name)) continue;
        std::uint64_t ms = 0;
        if (!read_whole_number(field.value, ms))
          return RefusalAnswer{.refusal = Refusal::invalid_header, .detail = message, .param = name};
        ms = std::clamp<std::uint64_t>(ms, 1, deadline_ms_max);
        budgets.*by = after(x.request.received, std::chrono::milliseconds(ms));
      }
      for (const auto& [name, message, by, most] : stated_as_number) {
        if (!wire::equals_ignoring_case(field.name, name)) continue;
        double number = 0;
        if (!read_number(field.value, number))
          return RefusalAnswer{.refusal = Refusal::invalid_header, .detail = message, .param = name};
        budgets.*by = std::min(number, most);
      }
      if (wire::equals_ignoring_case(field.name, class_header)) {
        const auto found = std::ranges::find(policies::class_names, field.value);
        if (found == policies::class_names.end())
          return RefusalAnswer{.refusal = Refusal::invalid_header,
                               .detail = "x-headgate-class must be interactive, standard, batch or sheddable",
                               .param = class_header};
        budgets.klass = static_cast<policies::Class>(found - policies::class_names.begin());
      }
    } else if (field.id == wire::Name::x_stainless_any) {
      if (wire::equals_ignoring_case(field.name, "x-stainless-timeout")) budgets.timeout = read_seconds(field.value);
      if (wire::equals_ignoring_case(field.name, "x-stainless-read-timeout"))
        budgets.read_timeout = read_seconds(field.value);
      std::uint64_t repeats = 0;
      if (wire::equals_ignoring_case(field.name, "x-stainless-retry-count") &&
          read_whole_number(field.value, repeats)) {
        budgets.repeat = repeats > 0;
      }
    }
  }
  return std::nullopt;
}

}  // namespace headgate::gateway
