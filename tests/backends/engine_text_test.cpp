#include "backends/engine/text.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "policies/base/tokens.hpp"

namespace headgate::engine {
namespace {

std::string answer(std::uint64_t state, std::uint32_t words) {
  std::string out;
  for (std::uint32_t i = 0; i < words; ++i) {
    if (i != 0) out += ' ';
    out += next_word(state);
  }
  return out;
}

TEST(Text, CountsWordsAsTheTokenRuleDoes) {
  for (const std::string_view text :
       {"", " ", "one", " one  two\tthree\nfour\r\n", "a-b c.d\u00e9 \u4f60\u597d e", "x"}) {
    Conversation conversation;
    conversation.add(text);
    EXPECT_EQ(conversation.words(), count_words(text)) << text;
  }
}

TEST(Text, AnAnswerHasOneTokenPerWord) {
  Conversation conversation;
  conversation.add("Why is the sky blue?");
  for (const std::uint32_t n : {1u, 2u, 57u, 300u}) EXPECT_EQ(count_words(answer(conversation.state(), n)), n);
}

TEST(Text, AnyPrefixOfAnAnswerContinuesToTheSameText) {
  Conversation conversation;
  conversation.add("You are terse.");
  conversation.add("Why is the sky blue?");
  const std::string whole = answer(conversation.state(), 40);
  std::size_t cut = 0;
  for (std::uint32_t done = 1; done < 40; ++done) {
    cut = whole.find(' ', cut + 1);
    Conversation resumed = conversation;
    resumed.add(std::string_view(whole).substr(0, cut));
    EXPECT_EQ(whole.substr(0, cut) + " " + answer(resumed.state(), 40 - done), whole) << done;
  }
}

TEST(Text, DependsOnEveryWordAndItsPlace) {
  std::set<std::uint64_t> states;
  for (const std::string_view text : {"a b c", "a b d", "b a c", "x b c", "a b", "a b c c", "ab c"}) {
    Conversation conversation;
    conversation.add(text);
    states.insert(conversation.state());
  }
  EXPECT_EQ(states.size(), 7u);
}

TEST(Text, IsTheSameOnEveryRun) {
  Conversation conversation;
  conversation.add("hello");
  EXPECT_EQ(answer(conversation.state(), 6), "business night area batch task tower");
}

TEST(Text, NaturalLengthsFillTheirRange) {
  std::set<std::uint32_t> lengths;
  for (int i = 0; i < 20000; ++i) {
    Conversation conversation;
    conversation.add(std::to_string(i));
    lengths.insert(natural_length(conversation.state()));
  }
  EXPECT_EQ(*lengths.begin(), 16u);
  EXPECT_EQ(*lengths.rbegin(), 256u);
}

}  // namespace
}  // namespace headgate::engine
