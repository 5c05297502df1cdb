#include "loadtest/prompt.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "policies/base/random.hpp"

namespace headgate::loadtest {
namespace {

constexpr std::array<std::string_view, 32> words_to_use{
    "amber",  "basin",  "cedar",  "delta", "ember", "fjord",   "grove", "harbor", "inlet",    "jetty", "kelp",
    "lagoon", "marsh",  "north",  "ocean", "pier",  "quay",    "reef",  "shoal",  "tide",     "under", "vessel",
    "wharf",  "yonder", "zephyr", "on",    "by",    "through", "of",    "across", "together", "still"};

constexpr std::uint64_t use_prompt = 200, use_block = 201;  // of draw()

void append_words(std::string& text, std::uint64_t base, std::uint32_t words) {
  std::uint64_t bits = 0;
  for (std::uint32_t k = 0; k < words; ++k) {
    if (k % 12 == 0) bits = mix64(base + k);  // 5 bits a word
    if (!text.empty()) text += ' ';
    text += words_to_use[bits & 31];
    bits >>= 5;
  }
}

}  // namespace

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string prompt_text(std::uint64_t seed, std::uint64_t id, const Planned& planned) {
  std::string text;
  text.reserve(planned.input * std::size_t{7});
  if (planned.prefix.empty()) append_words(text, draw(seed, id, use_prompt), planned.input);
  std::uint32_t left = planned.input;
  for (const std::uint32_t block : planned.prefix) {
    const std::uint32_t words = std::min(left, prefix_block_tokens);
    append_words(text, draw(seed, block, use_block), words);
    left -= words;
  }
  return text;
}

std::string request_bytes(const Asking& asking, const TrafficClass& of, std::uint64_t id, const Planned& planned) {
  const bool chat = asking.path == Path::chat;
  std::string body = "{\"model\":" + json_string(of.model);
  body += chat ? ",\"messages\":[{\"role\":\"user\",\"content\":\"" : ",\"prompt\":\"";
  body += prompt_text(asking.seed, id, planned);
  body += chat ? "\"}]" : "\"";
  body += ",\"max_tokens\":" + std::to_string(planned.output);
  if (planned.stream) body += ",\"stream\":true,\"stream_options\":{\"include_usage\":true}";
  body += '}';

  std::string request =
      chat ? "POST /v1/chat/completions HTTP/1.1\r\nHost: " : "POST /v1/completions HTTP/1.1\r\nHost: ";
  request += asking.authority;
  request += "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size());
  if (!asking.api_key.empty()) request += "\r\nAuthorization: Bearer " + asking.api_key;
  if (of.klass != policies::Class::interactive)
    request.append("\r\nx-headgate-class: ").append(policies::class_names[static_cast<std::size_t>(of.klass)]);
  const auto number = [&](std::string_view name, double value) {
    std::array<char, 400> digits{};  // the largest number that is written without an exponent has 309
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed).ptr;
    request.append("\r\n").append(name).append(": ").append(digits.data(), end);
  };
  if (of.max_cost_usd < policies::unlimited_usd) number("x-headgate-max-cost-usd", of.max_cost_usd);
  if (of.min_quality > 0) number("x-headgate-min-quality", of.min_quality);
  request += "\r\n\r\n";
  request += body;
  return request;
}

}  // namespace headgate::loadtest
