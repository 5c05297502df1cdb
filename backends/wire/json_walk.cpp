#include "backends/wire/json_walk.hpp"

#include <array>

#include "backends/wire/ascii.hpp"

namespace headgate::wire {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int folded = c | 0x20;
  return folded >= 'a' && folded <= 'f' ? folded - 'a' + 10 : -1;
}

// What may follow a backslash, but for the u.
constexpr std::array<bool, 256> simple_escape = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("\"\\/bfnrt")) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

// The four digits at the start of `hex`, known to be there.
std::uint32_t code_unit(std::string_view hex) {
  std::uint32_t unit = 0;
  for (std::size_t i = 0; i < 4; ++i) unit = unit << 4 | static_cast<std::uint32_t>(hex_value(hex[i]));
  return unit;
}

// Takes one character, or one byte of an unescaped one, from the front of a checked string.
std::uint32_t take(std::string_view& raw, bool& escaped) {
  const char first = raw[0];
  escaped = first == '\\';
  if (!escaped) {
    raw.remove_prefix(1);
    return octet(first);
  }
  const char kind = raw[1];
  raw.remove_prefix(2);
  switch (kind) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'u':
      break;
    default:
      return octet(kind);
  }
  const std::uint32_t unit = code_unit(raw);
  raw.remove_prefix(4);
  if (unit < 0xd800 || unit > 0xdfff) return unit;
  if (unit < 0xdc00 && raw.substr(0, 2) == "\\u") {
    const std::uint32_t low = code_unit(raw.substr(2));
    if (low >= 0xdc00 && low <= 0xdfff) {
      raw.remove_prefix(6);
      return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    }
  }
  return 0xfffd;
}

void append_utf8(std::uint32_t code, std::string& out) {
  const auto tail = [&](unsigned shift) { out.push_back(static_cast<char>(0x80 | (code >> shift & 0x3f))); };
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xc0 | code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | code >> 12));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xf0 | code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

bool JsonString::is_unescaped(std::string_view name) const {
  std::string_view rest = raw;
  for (const char wanted : name) {
    bool was_escaped = false;
    if (rest.empty() || take(rest, was_escaped) != octet(wanted)) return false;
  }
  return rest.empty();
}

void append_unescaped(std::string_view raw, std::string& out) {
  while (!raw.empty()) {
    bool was_escaped = false;
    const std::uint32_t code = take(raw, was_escaped);
    if (was_escaped) {
      append_utf8(code, out);
    } else {
      out.push_back(static_cast<char>(code));
    }
  }
}

bool JsonWalk::other_value() {
  const char first = peek();
  if (first == '{') return object([this](const JsonString&) { return value(); });
  if (first == '[') return array([this] { return value(); });
  if (first == 't') return literal("true");
  if (first == 'f') return literal("false");
  if (first == 'n') return literal("null");
  std::string_view unused;
  return number(unused);
}

// From the first byte that is not plain to the closing quote.
bool JsonWalk::string_rest(JsonString& out) {
  const char* at = at_;
  while (at != end_ && *at != '"') {
    if (*at != '\\') break;
    out.escaped = true;
    if (end_ - at >= 2 && simple_escape[octet(at[1])]) {
      at += 2;
    } else {
      at_ = at;
      if (!unicode_escape()) return false;
      at = at_;
    }
    at = find_byte<JsonStringByte>(at, end_, readable_);
  }
  at_ = at;
  return (at != end_ && *at == '"') || fail();
}

bool JsonWalk::unicode_escape() {
  ++at_;
  if (at_ == end_ || *at_ != 'u') return fail();
  ++at_;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ == end_ || hex_value(*at_) < 0) return fail();
  }
  return true;
}

bool JsonWalk::digits() {
  const char* const begin = at_;
  while (at_ < end_ && is_digit(*at_)) ++at_;
  return at_ != begin || fail();
}

bool JsonWalk::number(std::string_view& raw) {
  peek();
  const char* const begin = at_;
  if (at_ < end_ && *at_ == '-') ++at_;
  if (at_ < end_ && *at_ == '0') {
    ++at_;
  } else if (!digits()) {
    return false;
  }
  if (at_ < end_ && *at_ == '.') {
    ++at_;
    if (!digits()) return false;
  }
  if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
    if (!digits()) return false;
  }
  raw = std::string_view(begin, static_cast<std::size_t>(at_ - begin));
  return true;
}

bool JsonWalk::literal(std::string_view word) {
  const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
  for (std::size_t i = 0; i < word.size(); ++i, ++at_) {
    if (i == rest.size() || rest[i] != word[i]) return fail();
  }
  return true;
}

}  // namespace headgate::wire
