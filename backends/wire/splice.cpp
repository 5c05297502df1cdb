#include "backends/wire/splice.hpp"

#include <algorithm>
#include <cassert>

namespace headgate::wire {
namespace {

constexpr std::string_view options_field = R"("stream_options":{"include_usage":true},)";
constexpr std::string_view options_object = R"({"include_usage":true})";
constexpr std::string_view usage_field = R"("include_usage":true,)";

bool needs_escape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

void append_escaped(std::string_view text, std::string& out) {
  constexpr std::string_view hex = "0123456789abcdef";
  for (const char c : text) {
    if (!needs_escape(c)) {
      out.push_back(c);
      continue;
    }
    out.push_back('\\');
    switch (c) {
      case '"':
      case '\\':
        out.push_back(c);
        break;
      case '\n':
        out.push_back('n');
        break;
      case '\r':
        out.push_back('r');
        break;
      case '\t':
        out.push_back('t');
        break;
      default:
        out += "u00";
        out.push_back(hex[static_cast<unsigned char>(c) >> 4]);
        out.push_back(hex[c & 0xf]);
    }
  }
}

}  // namespace

void Splice::clear() { count_ = 0; }

void Splice::replace(ByteRange range, std::string_view text) {
  assert(count_ < edits_max);
  if (count_ == edits_max) return;
  std::size_t place = count_++;
  edits_[place].range = range;
  edits_[place].text.assign(text);
  for (; place > 0 && edits_[place - 1].range.begin > range.begin; --place) std::swap(edits_[place - 1], edits_[place]);
}

std::span<const std::string_view> Splice::pieces(std::string_view body) {
  std::size_t count = 0;
  std::size_t at = 0;
  const auto add = [&](std::string_view piece) {
    if (!piece.empty()) pieces_[count++] = piece;
  };
  for (std::size_t i = 0; i < count_; ++i) {
    const Edit& edit = edits_[i];
    add(body.substr(at, edit.range.begin - at));
    add(edit.text);
    at = edit.range.end;
  }
  add(body.substr(at));
  return {pieces_.data(), count};
}

std::size_t Splice::size(std::string_view body) const {
  std::size_t size = body.size();
  for (std::size_t i = 0; i < count_; ++i) {
    size += edits_[i].text.size();
    size -= edits_[i].range.end - edits_[i].range.begin;
  }
  return size;
}

// The quotes that are there stay, so that a plain name needs no copy before the one in Splice.
void set_model(Splice& splice, const Skim& skim, std::string_view model) {
  const ByteRange inside{skim.model_value.begin + 1, skim.model_value.end - 1};
  if (std::none_of(model.begin(), model.end(), needs_escape)) {
    splice.replace(inside, model);
    return;
  }
  std::string escaped;
  append_escaped(model, escaped);
  splice.replace(inside, escaped);
}

void ask_for_usage(Splice& splice, const Skim& skim) {
  if (skim.include_usage.value_or(false)) return;
  if (!skim.include_usage_value.empty()) {
    splice.replace(skim.include_usage_value, "true");
  } else if (skim.stream_options_value.empty()) {
    const std::size_t comma = skim.object_empty ? 1 : 0;
    splice.replace({skim.object_begin, skim.object_begin}, options_field.substr(0, options_field.size() - comma));
  } else if (skim.stream_options_empty) {
    splice.replace(skim.stream_options_value, options_object);
  } else {
    const std::size_t begin = skim.stream_options_value.begin + 1;
    splice.replace({begin, begin}, usage_field);
  }
}

std::string json_quoted(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out.push_back('"');
  append_escaped(text, out);
  out.push_back('"');
  return out;
}

}  // namespace headgate::wire
