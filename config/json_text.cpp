#include "config/json_text.hpp"

#include <algorithm>
#include <cstddef>

namespace headgate::config {
namespace {

constexpr std::size_t nowhere = std::string_view::npos;

unsigned line_at(std::string_view text, std::size_t offset) {
  return 1 + static_cast<unsigned>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

class Plainer {
 public:
  Plainer(std::string_view text, Problems& problems) : out_(text), problems_(problems) {}

  std::optional<std::string> run() {
    while (at_ < out_.size()) {
      const char c = out_[at_];
      if (c == '"') {
        significant(c);
        skip_string();
      } else if (c == '/' && next() == '/') {
        blank_until(std::min(out_.find('\n', at_), out_.size()));
      } else if (c == '/' && next() == '*') {
        if (!blank_block()) return std::nullopt;
      } else {
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n') significant(c);
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  char next() const { return at_ + 1 < out_.size() ? out_[at_ + 1] : '\0'; }

  // A comma is blanked when a bracket closes right after it; never one that follows no value, as in [,].
  void significant(char c) {
    if ((c == '}' || c == ']') && comma_ != nowhere) out_[comma_] = ' ';
    const bool after_value = last_ != '\0' && std::string_view("[{,:").find(last_) == nowhere;
    comma_ = c == ',' && after_value ? at_ : nowhere;
    last_ = c;
  }

  void skip_string() {
    for (++at_; at_ < out_.size() && out_[at_] != '"' && out_[at_] != '\n'; ++at_) {
      if (out_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, out_.size());
  }

  bool blank_block() {
    const std::size_t close = out_.find("*/", at_ + 2);
    if (close == nowhere) {
      problems_.add(line_at(out_, at_), {}, "syntax error: the comment that begins here with /* is not closed");
      return false;
    }
    blank_until(close + 2);
    return true;
  }

  void blank_until(std::size_t end) {
    for (; at_ < end; ++at_) {
      if (out_[at_] != '\n') out_[at_] = ' ';
    }
  }

  std::string out_;
  Problems& problems_;
  std::size_t at_ = 0, comma_ = nowhere;
  char last_ = '\0';
};

}  // namespace

std::optional<std::string> plain_json(std::string_view text, Problems& problems) {
  // the parser would take a NUL for the end and leave out the rest in silence
  if (const auto nul = text.find('\0'); nul != nowhere) {
    problems.add(line_at(text, nul), {}, "syntax error: a NUL byte; the file must be UTF-8 text");
    return std::nullopt;
  }
  return Plainer(text, problems).run();
}

}  // namespace headgate::config
