#include "backends/engine/text.hpp"

#include <array>
#include <cstddef>

#include "policies/base/random.hpp"

namespace headgate::engine {
namespace {

constexpr std::string_view vocabulary =
    "time year people way day man thing woman life child world school state family student group country problem "
    "hand part place case week company system program question work night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head house service friend father "
    "power hour game line end member law car city name team minute idea kid body back parent face level office "
    "door health person art war history party result change morning reason research girl guy moment air teacher "
    "force order act light paper model token batch queue slot cache layer query key value route pool step rate "
    "limit budget retry probe stream chunk event clock trace load spill drain lease shard socket header frame "
    "byte vector matrix tensor kernel graph node edge path tree heap stack list array table index field record "
    "lock thread task signal timer buffer window cursor branch merge patch build test bench score mean median "
    "tail range bound scale shift mask bit flag mode phase cycle pulse wave beam lens mirror river ocean island "
    "valley forest garden bridge tower castle village market harbor station engine wheel piston valve copper "
    "silver iron carbon oxygen planet orbit comet rocket lunar solar winter summer spring autumn north south east "
    "west amber azure crimson violet golden rapid quiet gentle bright narrow wide deep shallow early late simple "
    "plain clear steady even odd prime equal whole half double triple single many few most least other same next "
    "last first over under between above";

constexpr bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

constexpr std::uint64_t hash_start = 0xcbf29ce484222325u;
constexpr std::uint64_t hash_step(std::uint64_t hash, char c) {
  return (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;  // FNV-1a
}

struct Word {
  std::string_view text;
  std::uint64_t hash = 0;
};

consteval std::array<Word, 256> split_vocabulary() {
  std::array<Word, 256> out{};
  std::size_t begin = 0;
  for (Word& word : out) {
    std::size_t end = vocabulary.find(' ', begin);
    if (end == std::string_view::npos) end = vocabulary.size();
    word.text = vocabulary.substr(begin, end - begin);
    word.hash = hash_start;
    for (const char c : word.text) word.hash = hash_step(word.hash, c);
    begin = end + 1;
  }
  return out;
}

constexpr std::array<Word, 256> words = split_vocabulary();
static_assert(!words.back().text.empty());

}  // namespace

void Conversation::add(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    while (at != end && blank(*at)) ++at;
    if (at == end) return;
    std::uint64_t hash = hash_start;
    do {
      hash = hash_step(hash, *at++);
    } while (at != end && !blank(*at));
    state_ = mix64(state_ ^ hash);
    ++words_;
    if (block_words_ > 0 && words_ % block_words_ == 0) blocks_.push_back(state_);
  }
}

std::string_view next_word(std::uint64_t& state) {
  const Word& word = words[mix64(state) >> 56];
  state = mix64(state ^ word.hash);
  return word.text;
}

void add_answer_blocks(std::vector<std::uint64_t>& blocks, std::uint32_t block_words, std::uint32_t words,
                       std::uint64_t state, std::uint32_t answer_words) {
  for (std::uint32_t last = words + answer_words; words < last;) {
    next_word(state);
    if (++words % block_words == 0) blocks.push_back(state);
  }
}

std::uint32_t natural_length(std::uint64_t state) {
  return natural_length_min + below(draw(state, 0, 1), natural_length_max - natural_length_min + 1);
}

}  // namespace headgate::engine
