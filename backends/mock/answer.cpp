#include "backends/mock/answer.hpp"

#include <array>
#include <bit>
#include <charconv>

#include "backends/engine/text.hpp"
#include "backends/wire/splice.hpp"
#include "policies/base/random.hpp"

namespace headgate::mock {
namespace {

constexpr std::string_view created = "1700000000";  // fixed, see the header

void append_number(std::uint64_t number, std::string& out) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append_hex16(std::uint64_t number, std::string& out) {
  for (int shift = 60; shift >= 0; shift -= 4) out.push_back("0123456789abcdef"[number >> shift & 15]);
}

void append_word(Answer& answer, std::string& out) {
  if (answer.produced++ != 0 || answer.leading_space) out.push_back(' ');
  out.append(engine::next_word(answer.state));
}

void append_usage(std::uint32_t prompt, std::uint32_t completion, std::string& out) {
  out.append(R"("usage":{"prompt_tokens":)");
  append_number(prompt, out);
  out.append(R"(,"completion_tokens":)");
  append_number(completion, out);
  out.append(R"(,"total_tokens":)");
  append_number(std::uint64_t{prompt} + completion, out);
  out.append(R"(,"prompt_tokens_details":{"cached_tokens":0}})");
}

void append_identity(const Answer& answer, bool chunk, std::string& out) {
  const bool chat = answer.kind == Kind::chat;
  out.append(chat ? R"({"id":"chatcmpl-)" : R"({"id":"cmpl-)");
  append_hex16(answer.id, out);
  out.append(!chat   ? R"(","object":"text_completion","created":)"
             : chunk ? R"(","object":"chat.completion.chunk","created":)"
                     : R"(","object":"chat.completion","created":)");
  out.append(created).append(R"(,"model":)").append(answer.model);
}

std::string_view finish_reason(const Answer& answer) { return answer.capped ? R"("length")" : R"("stop")"; }

bool plain(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c == '"' || c == '\\' || c == 0x7f) return false;
  }
  return true;
}

// Value i of the vector of an input: uniform in [-1, 1).
float coordinate(std::uint64_t state, std::uint32_t i) { return static_cast<float>(unit(draw(state, i, 2)) * 2 - 1); }

void append_base64(std::uint64_t state, std::uint32_t dimensions, std::string& out) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::uint32_t group = 0, bytes = 0;
  const auto flush = [&](std::uint32_t count) {
    for (std::uint32_t i = 0; i < 4; ++i) out.push_back(i <= count ? digits[group >> (18 - 6 * i) & 63] : '=');
    group = bytes = 0;
  };
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(coordinate(state, i));
    for (unsigned shift = 0; shift < 32; shift += 8) {  // little endian
      group |= (bits >> shift & 0xff) << (16 - 8 * bytes);
      if (++bytes == 3) flush(3);
    }
  }
  if (bytes != 0) flush(bytes);
}

void append_floats(std::uint64_t state, std::uint32_t dimensions, std::string& out) {
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), coordinate(state, i)).ptr;
    if (i != 0) out.push_back(',');
    out.append(digits.data(), end);
  }
}

std::string_view reason_of(std::uint16_t status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

}  // namespace

std::string quoted(std::string_view text) {
  if (!plain(text)) return wire::json_quoted(text);
  std::string out;
  out.reserve(text.size() + 2);
  return out.append(1, '"').append(text).append(1, '"');
}

void start_answer(Kind kind, const Ask& ask, Answer& out) {
  out.kind = kind;
  if (plain(ask.model)) {
    out.model.assign(1, '"').append(ask.model).append(1, '"');
  } else {
    out.model = wire::json_quoted(ask.model);
  }
  out.id = draw(ask.state, ask.output_tokens, 3);
  out.prompt_tokens = ask.prompt_tokens;
  out.output_tokens = ask.output_tokens;
  out.capped = ask.cap.has_value();
  out.leading_space = ask.leading_space;
  out.state = ask.state;
  out.produced = 0;
}

void append_body(Answer& answer, std::string& out) {
  append_identity(answer, false, out);
  const bool chat = answer.kind == Kind::chat;
  out.append(chat ? R"(,"choices":[{"index":0,"message":{"role":"assistant","content":")"
                  : R"(,"choices":[{"index":0,"text":")");
  while (answer.produced < answer.output_tokens) append_word(answer, out);
  out.append(chat ? R"(","refusal":null},"logprobs":null,"finish_reason":)" : R"(","logprobs":null,"finish_reason":)");
  out.append(finish_reason(answer)).append("}],");
  append_usage(answer.prompt_tokens, answer.produced, out);
  out.push_back('}');
}

void append_embeddings(const Ask& ask, std::string& out) {
  out.append(R"({"object":"list","data":[)");
  std::uint32_t index = 0;
  for (const std::uint64_t state : ask.inputs) {
    out.append(index == 0 ? R"({"object":"embedding","index":)" : R"(,{"object":"embedding","index":)");
    append_number(index++, out);
    out.append(ask.base64 ? R"(,"embedding":")" : R"(,"embedding":[)");
    if (ask.base64) {
      append_base64(state, ask.dimensions, out);
    } else {
      append_floats(state, ask.dimensions, out);
    }
    out.append(ask.base64 ? R"("})" : "]}");
  }
  out.append(R"(],"model":)").append(quoted(ask.model)).append(R"(,"usage":{"prompt_tokens":)");
  append_number(ask.prompt_tokens, out);
  out.append(R"(,"total_tokens":)");
  append_number(ask.prompt_tokens, out);
  out.append("}}");
}

std::string models_body(std::span<const std::string> names) {
  std::string out = R"({"object":"list","data":[)";
  for (const std::string& name : names) {
    if (out.back() == '}') out.push_back(',');
    out.append(model_body(name));
  }
  return out.append("]}");
}

std::string model_body(std::string_view name) {
  return R"({"id":)" + quoted(name) + R"(,"object":"model","created":)" + std::string(created) +
         R"(,"owned_by":"headgate-mock"})";
}

void EventWriter::start(const Answer& answer, bool chunked) {
  chunked_ = chunked;
  chat_ = answer.kind == Kind::chat;
  lead_ = "data: ";
  append_identity(answer, true, lead_);
  lead_.append(R"(,"choices":[)");
}

void EventWriter::piece(std::initializer_list<std::string_view> parts, std::string& out) const {
  std::size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  if (chunked_) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16).ptr;
    out.append(digits.data(), end).append("\r\n");
  }
  for (const std::string_view part : parts) out.append(part);
  if (chunked_) out.append("\r\n");
}

void EventWriter::role(std::string& out) const {
  piece({lead_, R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})",
         "\n\n"},
        out);
}

void EventWriter::content(Answer& answer, std::string& out) const {
  const bool space = answer.produced++ != 0 || answer.leading_space;
  const std::string_view word = engine::next_word(answer.state);
  piece({lead_, chat_ ? R"({"index":0,"delta":{"content":")" : R"({"index":0,"text":")", space ? " " : "", word,
         chat_ ? R"("},"logprobs":null,"finish_reason":null}]})" : R"(","logprobs":null,"finish_reason":null}]})",
         "\n\n"},
        out);
}

void EventWriter::finish(const Answer& answer, std::string& out) const {
  piece({lead_, chat_ ? R"({"index":0,"delta":{},)" : R"({"index":0,"text":"",)", R"("logprobs":null,"finish_reason":)",
         finish_reason(answer), "}]}\n\n"},
        out);
}

void EventWriter::usage(const Answer& answer, std::string& out) const {
  std::string fields;
  append_usage(answer.prompt_tokens, answer.produced, fields);
  piece({lead_, "],", fields, "}\n\n"}, out);
}

void EventWriter::bare(std::string_view event, std::string& out) const { piece({event}, out); }

void EventWriter::end(std::string& out) const {
  if (chunked_) out.append("0\r\n\r\n");
}

std::string error_body(std::string_view message, std::string_view type, std::string_view param, std::string_view code) {
  const auto or_null = [](std::string_view text) { return text.empty() ? std::string("null") : quoted(text); };
  return R"({"error":{"message":)" + quoted(message) + R"(,"type":)" + quoted(type) + R"(,"param":)" + or_null(param) +
         R"(,"code":)" + or_null(code) + "}}";
}

void append_head(std::uint16_t status, std::string_view type, std::size_t length, bool close, std::string_view headers,
                 std::string& out) {
  if (status == 200) {
    out.append("HTTP/1.1 200 OK\r\nContent-Type: ");
  } else {
    out.append("HTTP/1.1 ");
    append_number(status, out);
    out.append(" ").append(reason_of(status)).append("\r\nContent-Type: ");
  }
  out.append(type).append("\r\nContent-Length: ");
  append_number(length, out);
  out.append("\r\n").append(headers).append(close ? "Connection: close\r\n\r\n" : "\r\n");
}

void append_stream_head(bool chunked, bool close, std::string& out) {
  out.append("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n");
  if (chunked) out.append("Transfer-Encoding: chunked\r\n");
  out.append(close ? "Connection: close\r\n\r\n" : "\r\n");
}

}  // namespace headgate::mock
