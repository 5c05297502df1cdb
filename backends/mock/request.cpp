#include "backends/mock/request.hpp"

#include <algorithm>
#include <utility>

namespace headgate::mock {
namespace {

bool ends_blank(std::string_view text) {
  return text.empty() || text.back() == ' ' || text.back() == '\n' || text.back() == '\t' || text.back() == '\r';
}

}  // namespace

bool RequestReader::read(Kind kind, std::string_view body, std::size_t readable_behind, Ask& out,
                         std::uint32_t block_tokens) {
  kind_ = kind;
  ask_ = &out;
  out.model.clear();
  out.inputs.clear();
  out.stream = out.include_usage = out.leading_space = out.base64 = false;
  out.cap.reset();
  out.dimensions = 8;
  walk_ = wire::JsonWalk(body, readable_behind);
  conversation_ = engine::Conversation(kind == Kind::embedding ? 0 : block_tokens);
  before_last_ = words_before_last_ = 0;
  model_ = input_ = assistant_last_ = joins_ = false;
  problem_ = Problem{};
  if (walk_.peek() != '{') {
    problem_ = {"the body must be a JSON object", {}, "invalid_body"};
    return false;
  }
  const bool ok = walk_.object([this](const wire::JsonString& key) { return field(key); }) && walk_.at_end();
  if (ok) return finish();
  if (problem_.message.empty()) {
    problem_ = {"the body is not valid JSON at byte " + std::to_string(walk_.offset()), {}, "invalid_body"};
  }
  return false;
}

bool RequestReader::field(const wire::JsonString& key) {
  if (key.is("model")) {
    model_ = true;
    return name("model", ask_->model);
  }
  if (key.is("messages") && kind_ == Kind::chat) return messages();
  if (key.is("prompt") && kind_ == Kind::completion) return prompt();
  if (key.is("input") && kind_ == Kind::embedding) return inputs();
  if (key.is("stream") && kind_ != Kind::embedding) return flag("stream", ask_->stream);
  if (key.is("stream_options") && walk_.peek() == '{') {
    return walk_.object([this](const wire::JsonString& option) {
      return option.is("include_usage") ? flag("stream_options.include_usage", ask_->include_usage) : walk_.value();
    });
  }
  if (key.is("max_tokens") || key.is("max_completion_tokens")) {
    std::optional<std::uint32_t> cap;
    if (!count(key.is("max_tokens") ? "max_tokens" : "max_completion_tokens", 1, 0xffffffffu, cap)) return false;
    if (cap) ask_->cap = std::min({*cap, ask_->cap.value_or(*cap), output_tokens_max});
    return true;
  }
  if (key.is("n") || key.is("best_of")) {
    std::optional<std::uint32_t> choices;
    return count(key.is("n") ? "n" : "best_of", 1, 1, choices);
  }
  if (key.is("dimensions")) {
    std::optional<std::uint32_t> dimensions;
    if (!count("dimensions", 1, dimensions_max, dimensions)) return false;
    ask_->dimensions = dimensions.value_or(ask_->dimensions);
    return true;
  }
  if (key.is("encoding_format")) {
    std::string format;
    if (!name("encoding_format", format)) return false;
    ask_->base64 = format == "base64";
    if (ask_->base64 || format == "float") return true;
    return fail("encoding_format", "encoding_format must be \"float\" or \"base64\", not \"" + format + "\"");
  }
  return walk_.value();
}

bool RequestReader::messages() {
  if (walk_.peek() != '[') return fail("messages", "messages must be a list");
  return walk_.array([this] {
    if (walk_.peek() != '{') return fail("messages", "each of messages must be an object");
    return message();
  });
}

bool RequestReader::message() {
  input_ = true;
  before_last_ = conversation_.state();
  words_before_last_ = conversation_.words();
  assistant_last_ = joins_ = false;
  return walk_.object([this](const wire::JsonString& key) {
    if (key.is("content")) return content();
    if (!key.is("role") || walk_.peek() != '"') return walk_.value();
    wire::JsonString role;
    if (!walk_.string(role)) return false;
    assistant_last_ = role.is("assistant");
    return true;
  });
}

bool RequestReader::content() {
  if (walk_.peek() == '"') return text();
  if (walk_.peek() != '[') return walk_.value();
  return walk_.array([this] {
    if (walk_.peek() != '{') return walk_.value();
    return walk_.object(
        [this](const wire::JsonString& key) { return key.is("text") && walk_.peek() == '"' ? text() : walk_.value(); });
  });
}

bool RequestReader::prompt() {
  input_ = true;
  if (walk_.peek() == '"') return text();
  if (walk_.peek() != '[') return fail("prompt", "prompt must be a string or a list");
  std::uint32_t texts = 0;
  return walk_.array([this, &texts] {
    if (walk_.peek() != '"') return tokens();
    if (++texts > 1) return fail("prompt", "this server answers one prompt at a time");
    return text();
  });
}

bool RequestReader::inputs() {
  input_ = true;
  const auto item = [this](auto&& read_one) {
    if (ask_->inputs.size() == inputs_max) {
      return fail("input", "at most " + std::to_string(inputs_max) + " inputs at once");
    }
    const std::uint32_t words = conversation_.words();
    ask_->prompt_tokens += words;
    conversation_ = engine::Conversation();
    const bool ok = read_one();
    ask_->inputs.push_back(conversation_.state());
    return ok;
  };
  ask_->prompt_tokens = 0;
  if (walk_.peek() == '"') return item([this] { return text(); });
  if (walk_.peek() != '[') return fail("input", "input must be a string or a list");
  bool ids = false;
  const bool ok = walk_.array([&, this] {
    const char first = walk_.peek();
    if (first == '"') return item([this] { return text(); });
    if (first == '[') return item([this] { return walk_.array([this] { return tokens(); }); });
    if (std::exchange(ids, true)) return tokens();  // a bare list of token ids is one input
    return item([this] { return tokens(); });
  });
  return ok && (!ask_->inputs.empty() || fail("input", "input must not be empty"));
}

bool RequestReader::tokens() {
  std::string_view id;
  if (walk_.peek() < '0' || walk_.peek() > '9') return fail({}, "a list of tokens must hold numbers only");
  if (!walk_.number(id)) return false;
  conversation_.add(id);
  joins_ = true;
  return true;
}

bool RequestReader::text() {
  wire::JsonString string;
  if (!walk_.string(string)) return false;
  std::string_view plain = string.raw;
  if (string.escaped) {
    scratch_.clear();
    wire::append_unescaped(string.raw, scratch_);
    plain = scratch_;
  }
  conversation_.add(plain);
  joins_ = !ends_blank(plain);
  return true;
}

bool RequestReader::flag(std::string_view field, bool& out) {
  const char first = walk_.peek();
  if (first != 't' && first != 'f' && first != 'n') return fail(field, std::string(field) + " must be true or false");
  if (!walk_.value()) return false;
  out = first == 't';
  return true;
}

bool RequestReader::count(std::string_view field, std::uint32_t least, std::uint32_t most,
                          std::optional<std::uint32_t>& out) {
  if (walk_.peek() == 'n') return walk_.value();
  const auto refuse = [&, this](std::string_view given) {
    std::string message =
        std::string(field) + " must be a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    if (!given.empty()) message.append(", not ").append(given);
    return fail(field, std::move(message));
  };
  if ((walk_.peek() < '0' || walk_.peek() > '9') && walk_.peek() != '-') return refuse({});
  std::string_view raw;
  if (!walk_.number(raw)) return false;
  std::uint64_t value = 0;
  for (const char c : raw) {
    if (c < '0' || c > '9') return refuse(raw);
    value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(c - '0'), 1ull << 33);
  }
  if (value < least || value > most) return refuse(raw);
  out = static_cast<std::uint32_t>(value);
  return true;
}

bool RequestReader::name(std::string_view field, std::string& out) {
  if (walk_.peek() != '"') return fail(field, std::string(field) + " must be a string");
  wire::JsonString string;
  if (!walk_.string(string)) return false;
  out.clear();
  if (string.escaped) {
    wire::append_unescaped(string.raw, out);
  } else {
    out = string.raw;
  }
  return true;
}

bool RequestReader::finish() {
  if (!model_) return fail("model", "model is missing", "missing_field");
  if (!input_) {
    const std::string_view field = kind_ == Kind::chat ? "messages" : kind_ == Kind::completion ? "prompt" : "input";
    return fail(field, std::string(field) + (kind_ == Kind::chat ? " is missing or empty" : " is missing"),
                "missing_field");
  }
  if (kind_ == Kind::embedding) {
    ask_->prompt_tokens += conversation_.words();
    ask_->output_tokens = 0;
    return true;
  }
  ask_->prompt_tokens = conversation_.words();
  ask_->state = conversation_.state();
  ask_->blocks.swap(conversation_.blocks());
  const bool continues = kind_ == Kind::completion || assistant_last_;
  ask_->leading_space = continues && joins_;
  if (ask_->cap) {
    ask_->output_tokens = *ask_->cap;
  } else if (kind_ == Kind::chat && assistant_last_) {
    // The answer as a whole keeps the length it would have had in one piece.
    const std::uint32_t whole = engine::natural_length(before_last_),
                        there = conversation_.words() - words_before_last_;
    ask_->output_tokens = whole > there ? whole - there : 0;
  } else {
    ask_->output_tokens = engine::natural_length(ask_->state);
  }
  return true;
}

bool RequestReader::fail(std::string_view param, std::string message, std::string_view code) {
  if (problem_.message.empty()) problem_ = {std::move(message), std::string(param), std::string(code)};
  return false;
}

}  // namespace headgate::mock
