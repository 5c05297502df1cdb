// One validating pass over a request body for the few fields that decide. The whole body is checked (UTF-8, syntax,
// depth 256); nothing is built from it. Values that must be edited are reported as byte ranges for splice.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace headgate::wire {

inline constexpr std::size_t json_depth_max = 256;
inline constexpr std::size_t name_bytes_max = 256;  // of a model: a longer one is nobody's name
inline constexpr std::size_t json_padding = 64;     // readable bytes needed behind the body

struct ByteRange {
  std::size_t begin = 0, end = 0;  // empty: absent
  bool empty() const { return begin == end; }
};

enum class SkimError : std::uint8_t { none, syntax, utf8, depth, not_object, missing, type, repeated, range };

struct Skim {
  std::string_view model;  // unescaped, but for one that is longer than any name; valid until the next skim
  ByteRange model_value;   // of the JSON string with its quotes
  bool stream = false;
  std::optional<bool> include_usage;        // stream_options.include_usage
  ByteRange include_usage_value;            // its value
  ByteRange stream_options_value;           // the whole object, or null
  bool stream_options_empty = false;        // null or {}: an insertion there needs no comma
  std::optional<std::uint64_t> max_tokens;  // the smallest of max_tokens, max_completion_tokens, max_output_tokens
  std::uint64_t n = 1, best_of = 1;
  std::size_t text_bytes = 0;    // of messages, prompt or input as written, for the token estimate
  std::size_t object_begin = 0;  // offset just behind the top-level '{', where a field may be inserted
  bool object_empty = false;
};

// The model of a body that looks whole: its first field, without escapes, and a '}' at the end. Else nothing. Between
// them nothing is checked. `body` as for skim().
std::string_view leading_model(std::string_view body);

// Deciding fields are compared after unescaping; null counts as absent except for model; a repeated one is an error.
class Skimmer {
 public:
  Skimmer();
  ~Skimmer();
  Skimmer(const Skimmer&) = delete;
  Skimmer& operator=(const Skimmer&) = delete;
  // `body` has json_padding readable bytes behind it. On error, problem() names the field or the place.
  SkimError skim(std::string_view body, Skim& out);
  std::string_view problem() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headgate::wire
