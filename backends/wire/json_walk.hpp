// A walk over JSON text that checks every byte of the syntax and builds nothing. The caller names the fields it wants
// by consuming their values itself; everything else goes through value().
//
//   JsonWalk walk(text, 0);
//   const bool ok = walk.peek() == '{' && walk.object([&](const JsonString& key) {
//     return key.is("error") ? read_error(walk) : walk.value();   // each consumes exactly one value
//   }) && walk.at_end();
// After a false: fault() and offset() say what is wrong and where. UTF-8 is not checked; lone surrogate escapes pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "backends/wire/byte_search.hpp"

namespace headgate::wire {

struct JsonString {
  std::string_view raw;  // between the quotes, as written
  bool escaped = false;  // raw has a backslash
  // Compared after unescaping; `name` is ASCII.
  bool is(std::string_view name) const { return escaped ? is_unescaped(name) : raw == name; }

 private:
  bool is_unescaped(std::string_view name) const;
};

// Appends `raw` of a checked string without its escapes; a lone surrogate becomes U+FFFD.
void append_unescaped(std::string_view raw, std::string& out);

class JsonWalk {
 public:
  enum class Fault : std::uint8_t { none, syntax, depth };
  static constexpr unsigned depth_max = 256;

  // `readable_behind`: bytes that may be loaded (and are ignored) behind the text.
  JsonWalk(std::string_view text, std::size_t readable_behind)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), readable_(end_ + readable_behind) {}

  // First byte of what comes next, white space skipped; '\0' at the end of the text.
  char peek() {
    while (at_ < end_ && octet(*at_) <= ' ' && is_space(*at_)) ++at_;
    return at_ < end_ ? *at_ : '\0';
  }
  bool at_end() { return (peek() == '\0' && at_ == end_) || fail(); }

  bool value() {
    if (peek() != '"') return other_value();
    JsonString unused;
    return string(unused);
  }
  bool string(JsonString& out) {
    if (peek() != '"') return fail();
    const char* const begin = ++at_;
    at_ = find_byte<JsonStringByte>(at_, end_, readable_);
    out.escaped = false;
    if ((at_ == end_ || *at_ != '"') && !string_rest(out)) return false;
    out.raw = std::string_view(begin, static_cast<std::size_t>(at_ - begin));
    ++at_;
    return true;
  }
  bool number(std::string_view& raw);

  // on_field(const JsonString& key) consumes the field's value.
  template <class OnField>
  bool object(OnField&& on_field) {
    if (!enter('{')) return false;
    if (peek() != '}') {
      for (;;) {
        JsonString key;
        if (!string(key)) return false;
        if (peek() != ':') return fail();
        ++at_;
        if (!on_field(key)) return false;
        const char c = peek();
        if (c == '}') break;
        if (c != ',') return fail();
        ++at_;
      }
    }
    return leave();
  }

  // on_item() consumes the item.
  template <class OnItem>
  bool array(OnItem&& on_item) {
    if (!enter('[')) return false;
    if (peek() != ']') {
      for (;;) {
        if (!on_item()) return false;
        const char c = peek();
        if (c == ']') break;
        if (c != ',') return fail();
        ++at_;
      }
    }
    return leave();
  }

  Fault fault() const { return fault_; }
  std::size_t offset() const { return static_cast<std::size_t>(at_ - begin_); }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
  bool fail(Fault fault = Fault::syntax) {
    if (fault_ == Fault::none) fault_ = fault;
    return false;
  }
  bool enter(char bracket) {
    if (peek() != bracket) return fail();
    if (++depth_ > depth_max) return fail(Fault::depth);
    ++at_;
    return true;
  }
  bool leave() {
    --depth_;
    ++at_;
    return true;
  }
  bool other_value();
  bool string_rest(JsonString& out);
  bool unicode_escape();
  bool digits();
  bool literal(std::string_view word);

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* readable_;
  unsigned depth_ = 0;
  Fault fault_ = Fault::none;
};

}  // namespace headgate::wire
