// What a request to the mock model asks for, read from its JSON body in one walk without building a tree.
//
//   if (!reader.read(Kind::chat, body, padding, ask)) answer_400(reader.problem());
// Prompt tokens are the words of all message contents (text parts included), of the prompt or of the inputs; a token
// id counts as one word. A trailing assistant message, like a completion prompt, is continued: the first token then
// starts with a space, as all later ones do, unless the text ends in white space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/engine/text.hpp"
#include "backends/wire/json_walk.hpp"

namespace headgate::mock {

inline constexpr std::uint32_t output_tokens_max = 131072;  // a larger cap counts as this one
inline constexpr std::uint32_t inputs_max = 2048, dimensions_max = 4096;

enum class Kind : std::uint8_t { chat, completion, embedding };

struct Ask {
  std::string model;
  bool stream = false, include_usage = false;
  std::optional<std::uint32_t> cap;  // the smaller of max_tokens and max_completion_tokens
  std::uint32_t prompt_tokens = 0;
  std::uint32_t output_tokens = 0;  // by cap, or the text's natural length
  bool leading_space = false;
  std::uint64_t state = 0;            // of the conversation, for the first word of the answer
  std::vector<std::uint64_t> inputs;  // embeddings: a state for each
  std::uint32_t dimensions = 8;
  bool base64 = false;
  std::vector<std::uint64_t> blocks;  // of the conversation: engine::Work::blocks
};

struct Problem {
  std::string message, param, code;
};

class RequestReader {
 public:
  // `body` has `readable_behind` readable bytes behind it.
  // block_tokens: of the engine's memory; 0: nobody asks for blocks.
  bool read(Kind kind, std::string_view body, std::size_t readable_behind, Ask& out, std::uint32_t block_tokens = 0);
  const Problem& problem() const { return problem_; }

 private:
  bool field(const wire::JsonString& key);
  bool messages();
  bool message();
  bool content();
  bool prompt();
  bool inputs();
  bool tokens();
  bool text();
  bool flag(std::string_view name, bool& out);
  bool count(std::string_view name, std::uint32_t least, std::uint32_t most, std::optional<std::uint32_t>& out);
  bool name(std::string_view field, std::string& out);
  bool finish();
  bool fail(std::string_view param, std::string message, std::string_view code = "invalid_value");

  Kind kind_ = Kind::chat;
  Ask* ask_ = nullptr;
  wire::JsonWalk walk_{{}, 0};
  engine::Conversation conversation_;
  std::uint64_t before_last_ = 0;  // state before the last message
  std::uint32_t words_before_last_ = 0;
  bool model_ = false, input_ = false;           // seen
  bool assistant_last_ = false, joins_ = false;  // joins_: the last text does not end in white space
  std::string scratch_;
  Problem problem_;
};

}  // namespace headgate::mock
