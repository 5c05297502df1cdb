// The mock models' language. One word is one token, and every word is a function of all words before it, so an answer
// continued from any of its own prefixes is the same text, on any replica:
//   state' = mix64(state ^ hash(word)), over the words of all messages or of the prompt, then over the answer's own.
// Words of an answer are lower-case ASCII letters and need no escaping. Counts agree with count_words().
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headgate::engine {

inline constexpr std::uint32_t natural_length_min = 16, natural_length_max = 256;

// Reads the conversation so far. With `block_words` it keeps the state at the end of each so many words: what the
// prefix cache knows a full block by.
class Conversation {
 public:
  explicit Conversation(std::uint32_t block_words = 0) : block_words_(block_words) {}
  void add(std::string_view text);  // a message, or the prompt; words do not run on from one text to the next
  std::uint64_t state() const { return state_; }
  std::uint32_t words() const { return words_; }
  std::vector<std::uint64_t>& blocks() { return blocks_; }

 private:
  std::uint32_t block_words_ = 0;
  std::uint64_t state_ = 0x68656164;
  std::uint32_t words_ = 0;
  std::vector<std::uint64_t> blocks_;
};

// The next word of an answer; `state` moves on as if it had been read.
std::string_view next_word(std::uint64_t& state);

// The blocks of a text of `words` words and state `state`, and of the answer of so many words behind it.
void add_answer_blocks(std::vector<std::uint64_t>& blocks, std::uint32_t block_words, std::uint32_t words,
                       std::uint64_t state, std::uint32_t answer_words);

// Words of an answer nobody capped, from the state before its first word: natural_length_min..max.
std::uint32_t natural_length(std::uint64_t state);

}  // namespace headgate::engine
