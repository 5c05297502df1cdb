#include "backends/wire/json_skim.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "backends/wire/json_walk.hpp"

namespace headgate::wire {
namespace {

static_assert(json_depth_max == JsonWalk::depth_max);

enum class Key : std::uint8_t {
  model,
  stream,
  stream_options,
  include_usage,
  max_tokens,
  max_completion_tokens,
  max_output_tokens,
  n,
  best_of,
  text,  // from here on: not deciding
  other,
};
constexpr std::array<std::string_view, 9> key_names{
    "model", "stream", "stream_options", "include_usage", "max_tokens", "max_completion_tokens", "max_output_tokens",
    "n",     "best_of"};
constexpr std::array<std::string_view, 3> text_names{"messages", "prompt", "input"};

constexpr std::uint64_t max_tokens_most = 0xffffffffu;
constexpr std::uint64_t choices_most = 128;

std::string_view name_of(Key key) { return key_names[static_cast<std::size_t>(key)]; }

// A field of the top level, or with `nested` of stream_options.
Key classify(const JsonString& key, bool nested) {
  if (nested) return key.is("include_usage") ? Key::include_usage : Key::other;
  if (!key.escaped && key.raw.size() > 21) return Key::other;
  for (std::size_t i = 0; i < key_names.size(); ++i) {
    if (key.is(key_names[i])) return static_cast<Key>(i) == Key::include_usage ? Key::other : static_cast<Key>(i);
  }
  for (const std::string_view name : text_names) {
    if (key.is(name)) return Key::text;
  }
  return Key::other;
}

// Offset of the first byte that is not part of a well-formed character (Unicode 15, table 3-7).
std::size_t find_bad_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? octet(text[i]) : 0u; };
  std::size_t at = 0;
  while (at < text.size()) {
    const unsigned first = byte(at);
    if (first < 0x80) {
      ++at;
      continue;
    }
    const std::size_t tails = first < 0xc2 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : 0;
    const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    bool ok = tails != 0 && byte(at + 1) >= low && byte(at + 1) <= high;
    for (std::size_t i = 2; i <= tails; ++i) ok = ok && (byte(at + i) & 0xc0) == 0x80;
    if (!ok) return at;
    at += tails + 1;
  }
  return at;
}

// A value as it stands in an error message: short, whole characters only.
std::string shown(std::string_view value) {
  constexpr std::size_t most = 40;
  if (value.empty()) return "nothing";
  if (value.front() == '{') return "an object";
  if (value.front() == '[') return "a list";
  if (value.size() <= most) return std::string(value);
  std::size_t cut = most;
  while (cut > 0 && (octet(value[cut]) & 0xc0) == 0x80) --cut;
  return std::string(value.substr(0, cut)) + "...";
}

}  // namespace

struct Skimmer::State {
  std::string model;    // unescaped, when it has escapes
  std::string problem;  // of the last error
};

namespace {

// One skim: walks, notes the first error about a field, and keeps on checking the syntax.
class Pass {
 public:
  Pass(std::string_view body, Skim& out, std::string& model, std::string& problem)
      : body_(body), walk_(body, json_padding), out_(out), model_(model), problem_(problem) {}

  SkimError run() {
    if (!simdjson::validate_utf8(body_.data(), body_.size())) {
      return fail(SkimError::utf8, "invalid UTF-8 at byte " + std::to_string(find_bad_utf8(body_)));
    }
    const bool is_object = walk_.peek() == '{';
    const bool ok = is_object ? read_top() : walk_.value();
    if (!ok || !walk_.at_end()) return broken();
    if (!is_object) return fail(SkimError::not_object, "the body must be a JSON object");
    if (error_ == SkimError::none && !has(Key::model)) fail(SkimError::missing, "field 'model' is missing");
    return error_;
  }

 private:
  bool has(Key key) const { return (seen_ >> static_cast<unsigned>(key) & 1u) != 0; }

  bool read_top() {
    out_.object_begin = walk_.offset() + 1;
    out_.object_empty = true;
    return walk_.object([this](const JsonString& key) {
      out_.object_empty = false;
      return read_field(classify(key, false));
    });
  }

  bool read_field(Key key) {
    if (key == Key::other) return walk_.value();
    walk_.peek();
    const std::size_t begin = walk_.offset();
    if (key == Key::text) {
      if (!walk_.value()) return false;
      out_.text_bytes += walk_.offset() - begin;
      return true;
    }
    if (has(key)) fail(SkimError::repeated, "field '" + std::string(name_of(key)) + "' is repeated");
    seen_ |= 1u << static_cast<unsigned>(key);
    switch (key) {
      case Key::model:
        return read_model(begin);
      case Key::stream_options:
        return read_stream_options(begin);
      case Key::stream:
        return read_flag(key, begin);
      case Key::include_usage:
        return read_flag(key, begin);
      default:
        return read_count(key, begin);
    }
  }

  bool read_model(std::size_t begin) {
    if (walk_.peek() != '"') return wrong_type(Key::model, "a string", begin);
    JsonString name;
    if (!walk_.string(name)) return false;
    out_.model_value = {begin, walk_.offset()};
    out_.model = name.raw;
    constexpr std::size_t escape_bytes = 6;  // \u0061 is one byte
    if (name.escaped && name.raw.size() <= name_bytes_max * escape_bytes) {
      model_.clear();
      append_unescaped(name.raw, model_);
      out_.model = model_;
    }
    return true;
  }

  bool read_stream_options(std::size_t begin) {
    const char first = walk_.peek();
    if (first != '{' && first != 'n') return wrong_type(Key::stream_options, "an object", begin);
    out_.stream_options_empty = true;
    const bool ok = first == 'n' ? walk_.value() : walk_.object([this](const JsonString& key) {
      out_.stream_options_empty = false;
      return read_field(classify(key, true));
    });
    out_.stream_options_value = {begin, walk_.offset()};
    return ok;
  }

  bool read_flag(Key key, std::size_t begin) {
    const char first = walk_.peek();
    if (first != 't' && first != 'f' && first != 'n') return wrong_type(key, "true or false", begin);
    if (!walk_.value()) return false;
    if (key == Key::stream) {
      out_.stream = first == 't';
    } else {
      out_.include_usage_value = {begin, walk_.offset()};
      if (first != 'n') out_.include_usage = first == 't';
    }
    return true;
  }

  bool read_count(Key key, std::size_t begin) {
    const bool choices = key == Key::n || key == Key::best_of;
    const char first = walk_.peek();
    if (first == 'n') return walk_.value();
    if (first != '-' && (first < '0' || first > '9')) return wrong_type(key, "a whole number", begin);
    std::string_view raw;
    if (!walk_.number(raw)) return false;
    if (raw.find_first_of(".eE") != std::string_view::npos) return wrong_type(key, "a whole number", begin, raw);
    const bool negative = first == '-';
    const std::uint64_t most = choices ? choices_most : max_tokens_most;
    std::uint64_t value = 0;
    for (const char c : raw.substr(negative ? 1 : 0)) {
      value = std::min(most + 1, value * 10 + static_cast<std::uint64_t>(c - '0'));
    }
    if (!choices) {  // some servers take -1 for "no limit": what is out of range is the backend's to judge
      if (negative && value != 0) return true;
      value = std::min(value, most);
      out_.max_tokens = std::min(out_.max_tokens.value_or(value), value);
      return true;
    }
    if (negative || value == 0 || value > most) {
      fail(SkimError::range, "field '" + std::string(name_of(key)) + "' must be from 1 to " + std::to_string(most) +
                                 ", not " + shown(raw));
      return true;
    }
    (key == Key::n ? out_.n : out_.best_of) = value;
    return true;
  }

  bool wrong_type(Key key, std::string_view wanted, std::size_t begin) {
    if (!walk_.value()) return false;
    return wrong_type(key, wanted, begin, body_.substr(begin, walk_.offset() - begin));
  }

  bool wrong_type(Key key, std::string_view wanted, std::size_t, std::string_view raw) {
    fail(SkimError::type,
         "field '" + std::string(name_of(key)) + "' must be " + std::string(wanted) + ", not " + shown(raw));
    return true;
  }

  SkimError broken() {
    const std::string place = " at byte " + std::to_string(walk_.offset());
    error_ = SkimError::none;  // broken syntax outranks what was noted about a field
    if (walk_.fault() == JsonWalk::Fault::depth) return fail(SkimError::depth, "nested over 256 levels" + place);
    return fail(SkimError::syntax,
                (walk_.offset() >= body_.size() ? "unexpected end" : "unexpected character") + place);
  }

  SkimError fail(SkimError error, std::string problem) {
    if (error_ == SkimError::none) {
      error_ = error;
      problem_ = std::move(problem);
    }
    return error_;
  }

  std::string_view body_;
  JsonWalk walk_;
  Skim& out_;
  std::string& model_;
  std::string& problem_;
  SkimError error_ = SkimError::none;
  unsigned seen_ = 0;
};

}  // namespace

std::string_view leading_model(std::string_view body) {
  const std::size_t last = body.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos || body[last] != '}') return {};
  JsonWalk walk(body, json_padding);
  JsonString model;
  const auto read_first = [&](const JsonString& key) {
    if (key.raw != name_of(Key::model) || !walk.string(model) || model.escaped) model.raw = {};
    return false;
  };
  if (walk.peek() == '{') walk.object(read_first);
  return model.raw;
}

Skimmer::Skimmer() : state_(std::make_unique<State>()) {}
Skimmer::~Skimmer() = default;

SkimError Skimmer::skim(std::string_view body, Skim& out) {
  out = Skim{};
  state_->problem.clear();
  return Pass(body, out, state_->model, state_->problem).run();
}

std::string_view Skimmer::problem() const { return state_->problem; }

}  // namespace headgate::wire
