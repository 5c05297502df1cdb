#include "gateway/cors.hpp"

#include <algorithm>

#include "gateway/conclude.hpp"
#include "gateway/json_text.hpp"

namespace headgate::gateway {

namespace {

const config::CorsOptions* cors_of(const Exchange& x) {
  if (!x.request.catalog) return nullptr;  // refused for its head
  const config::CorsOptions& cors = x.request.catalog->options.cors;
  return cors.origins.empty() ? nullptr : &cors;
}

const wire::Field* find(const Exchange& x, wire::Name id, std::string_view name) {
  const auto found = std::ranges::find_if(x.head.fields, [&](const wire::Field& field) {
    return field.id == id && wire::equals_ignoring_case(field.name, name);
  });
  return found == x.head.fields.end() ? nullptr : &*found;
}

}  // namespace

void find_origin(Exchange& x) {
  const config::CorsOptions* const cors = cors_of(x);
  if (cors == nullptr) return;
  const wire::Field* const origin = find(x, wire::Name::origin, "origin");
  if (origin == nullptr) return;
  const auto named =
      std::ranges::find_if(cors->origins, [&](const std::string& one) { return one == "*" || one == origin->value; });
  if (named != cors->origins.end()) x.request.page_may_read = *named;
}

bool is_preflight(const Exchange& x) {
  return x.head.method == "OPTIONS" && cors_of(x) != nullptr && find(x, wire::Name::origin, "origin") != nullptr &&
         find(x, wire::Name::access_control_any, "access-control-request-method") != nullptr;
}

void append_cors_lines(std::string& out, const Exchange& x) {
  if (cors_of(x) == nullptr) return;
  out.append("vary: Origin\r\n");
  if (x.request.page_may_read.empty()) return;
  out.append("access-control-allow-origin: ")
      .append(x.request.page_may_read)
      .append(
          "\r\naccess-control-expose-headers: x-request-id, x-headgate-backend, x-headgate-attempts, "
          "x-headgate-queue-ms, x-headgate-cost-usd, "
          "x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, "
          "x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, "
          "x-headgate-refusal, retry-after, retry-after-ms, x-should-retry\r\n");
}

void write_preflight_answer(Exchange& x) {
  x.request.status = 204;
  x.out.assign("HTTP/1.1 204 No Content\r\n");
  append_own_lines(x.out, x);
  if (!x.request.page_may_read.empty()) {
    x.out.append("access-control-allow-methods: GET, POST\r\naccess-control-max-age: ");
    append_number(x.out, x.request.catalog->options.cors.max_age / std::chrono::seconds(1));
    x.out.append("\r\n");
    // Whatever the page wants to send: what is not ours goes to the backend, which decides.
    const wire::Field* const asked = find(x, wire::Name::access_control_any, "access-control-request-headers");
    if (asked != nullptr) x.out.append("access-control-allow-headers: ").append(asked->value).append("\r\n");
  }
  x.out.append("\r\n");
}

}  // namespace headgate::gateway
