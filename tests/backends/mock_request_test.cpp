#include "backends/mock/request.hpp"

#include <gtest/gtest.h>

#include <string>

#include "policies/base/tokens.hpp"

namespace headgate::mock {
namespace {

struct Read {
  bool ok = false;
  Ask ask;
  Problem problem;
};

Read read(Kind kind, const std::string& body) {
  Read out;
  RequestReader reader;
  out.ok = reader.read(kind, body, 0, out.ask);
  out.problem = reader.problem();
  return out;
}

std::string message(const std::string& role, const std::string& content) {
  return R"({"role":")" + role + R"(","content":)" + content + "}";
}

std::string chat_of(const std::string& messages, const std::string& extra = {}) {
  return R"({"model":"m","messages":[)" + messages + "]" + extra + "}";
}

TEST(MockRequest, CountsTheWordsOfAllMessageContents) {
  struct Case {
    std::string messages;
    std::uint32_t words;
  };
  const Case cases[] = {
      {message("user", R"("one")"), 1},
      {message("system", R"("one two")") + "," + message("user", R"(" three\nfour\tfive ")"), 5},
      {message("user", R"([{"type":"text","text":"one two"},{"type":"image_url","image_url":{"url":"x y"}},)"
                       R"({"type":"text","text":"three"}])"),
       3},
      {message("assistant", "null") + "," + message("user", R"("caf\u00e9\u0020au lait")"), 3},
      {R"({"content":"late role","role":"user"})", 2},
      {message("user", R"("\ud800 lone")"), 2},
      {message("user", R"("")"), 0},
  };
  for (const Case& c : cases) {
    const Read got = read(Kind::chat, chat_of(c.messages));
    ASSERT_TRUE(got.ok) << c.messages << got.problem.message;
    EXPECT_EQ(got.ask.prompt_tokens, c.words) << c.messages;
  }
}

TEST(MockRequest, EscapedAndPlainTextsAreTheSameConversation) {
  EXPECT_EQ(read(Kind::chat, chat_of(message("user", R"("a b")"))).ask.state,
            read(Kind::chat, chat_of(message("user", R"("\u0061\u0020b")"))).ask.state);
}

TEST(MockRequest, TheSmallerCapDecidesAndIsBounded) {
  const std::string user = message("user", R"("hi")");
  const auto tokens = [&](const std::string& extra) {
    return read(Kind::chat, chat_of(user, extra)).ask.output_tokens;
  };
  EXPECT_EQ(tokens(R"(,"max_tokens":5)"), 5u);
  EXPECT_EQ(tokens(R"(,"max_completion_tokens":7)"), 7u);
  EXPECT_EQ(tokens(R"(,"max_tokens":5,"max_completion_tokens":3)"), 3u);
  EXPECT_EQ(tokens(R"(,"max_completion_tokens":3,"max_tokens":5)"), 3u);
  EXPECT_EQ(tokens(R"(,"max_tokens":4000000000)"), output_tokens_max);
  const std::uint32_t natural = tokens(R"(,"max_tokens":null)");
  EXPECT_GE(natural, engine::natural_length_min);
  EXPECT_LE(natural, engine::natural_length_max);
}

TEST(MockRequest, ReadsTheStreamFields) {
  const std::string user = message("user", R"("hi")");
  EXPECT_FALSE(read(Kind::chat, chat_of(user)).ask.stream);
  const Ask ask = read(Kind::chat, chat_of(user, R"(,"stream":true,"stream_options":{"include_usage":true})")).ask;
  EXPECT_TRUE(ask.stream);
  EXPECT_TRUE(ask.include_usage);
  EXPECT_FALSE(read(Kind::chat, chat_of(user, R"(,"stream":null,"stream_options":null)")).ask.stream);
}

TEST(MockRequest, ATrailingAssistantMessageIsContinued) {
  const std::string user = message("user", R"("hi")");
  EXPECT_FALSE(read(Kind::chat, chat_of(user)).ask.leading_space);
  EXPECT_TRUE(read(Kind::chat, chat_of(user + "," + message("assistant", R"("so far")"))).ask.leading_space);
  EXPECT_FALSE(read(Kind::chat, chat_of(user + "," + message("assistant", R"("so far ")"))).ask.leading_space);
  EXPECT_FALSE(read(Kind::chat, chat_of(user + "," + message("assistant", R"("")"))).ask.leading_space);
  EXPECT_FALSE(read(Kind::chat, chat_of(user + "," + message("assistant", R"("x")") + "," + user)).ask.leading_space);
  const std::uint32_t whole = read(Kind::chat, chat_of(user)).ask.output_tokens;
  EXPECT_EQ(read(Kind::chat, chat_of(user + "," + message("assistant", R"("so far")"))).ask.output_tokens, whole - 2);
}

TEST(MockRequest, CompletionsTakeTextOrTokens) {
  EXPECT_EQ(read(Kind::completion, R"({"model":"m","prompt":"a b c"})").ask.prompt_tokens, 3u);
  EXPECT_EQ(read(Kind::completion, R"({"model":"m","prompt":["a b"]})").ask.prompt_tokens, 2u);
  EXPECT_EQ(read(Kind::completion, R"({"model":"m","prompt":[5,6,7,8]})").ask.prompt_tokens, 4u);
  EXPECT_TRUE(read(Kind::completion, R"({"model":"m","prompt":"a"})").ask.leading_space);
  EXPECT_FALSE(read(Kind::completion, R"({"model":"m","prompt":""})").ask.leading_space);
}

TEST(MockRequest, EmbeddingInputsMayBeTextsOrTokens) {
  struct Case {
    const char* input;
    std::size_t inputs;
    std::uint32_t tokens;
  };
  const Case cases[] = {
      {R"("a b")", 1, 2}, {R"(["a b","c"])", 2, 3}, {"[1,2,3]", 1, 3}, {"[[1,2],[3]]", 2, 3}, {R"(["a","a"])", 2, 2}};
  for (const Case& c : cases) {
    const Read got = read(Kind::embedding, std::string(R"({"model":"m","input":)") + c.input + "}");
    ASSERT_TRUE(got.ok) << c.input << got.problem.message;
    EXPECT_EQ(got.ask.inputs.size(), c.inputs) << c.input;
    EXPECT_EQ(got.ask.prompt_tokens, c.tokens) << c.input;
  }
  const Ask same = read(Kind::embedding, R"({"model":"m","input":["a","a"]})").ask;
  EXPECT_EQ(same.inputs[0], same.inputs[1]);
}

TEST(MockRequest, NamesWhatIsWrong) {
  const std::string user = message("user", R"("hi")");
  struct Case {
    Kind kind;
    std::string body, param, message;
  };
  const Case cases[] = {
      {Kind::chat, "[]", "", "the body must be a JSON object"},
      {Kind::chat, R"({"model":"m",)", "", "the body is not valid JSON at byte 13"},
      {Kind::chat, chat_of(user) + "x", "", "the body is not valid JSON at byte 57"},
      {Kind::chat, R"({"messages":[]})", "model", "model is missing"},
      {Kind::chat, R"({"model":7})", "model", "model must be a string"},
      {Kind::chat, R"({"model":"m","messages":[]})", "messages", "messages is missing or empty"},
      {Kind::chat, R"({"model":"m","messages":["hi"]})", "messages", "each of messages must be an object"},
      {Kind::completion, R"({"model":"m"})", "prompt", "prompt is missing"},
      {Kind::completion, R"({"model":"m","prompt":["a","b"]})", "prompt", "this server answers one prompt at a time"},
      {Kind::embedding, R"({"model":"m","input":[]})", "input", "input must not be empty"},
      {Kind::chat, chat_of(user, R"(,"max_tokens":0)"), "max_tokens",
       "max_tokens must be a whole number from 1 to 4294967295, not 0"},
      {Kind::chat, chat_of(user, R"(,"max_tokens":-3)"), "max_tokens",
       "max_tokens must be a whole number from 1 to 4294967295, not -3"},
      {Kind::chat, chat_of(user, R"(,"max_tokens":1.5)"), "max_tokens",
       "max_tokens must be a whole number from 1 to 4294967295, not 1.5"},
      {Kind::chat, chat_of(user, R"(,"max_tokens":99999999999999999999999)"), "max_tokens",
       "max_tokens must be a whole number from 1 to 4294967295, not 99999999999999999999999"},
      {Kind::chat, chat_of(user, R"(,"n":2)"), "n", "n must be a whole number from 1 to 1, not 2"},
      {Kind::chat, chat_of(user, R"(,"stream":"yes")"), "stream", "stream must be true or false"},
      {Kind::embedding, R"({"model":"m","input":"a","encoding_format":"hex"})", "encoding_format",
       R"(encoding_format must be "float" or "base64", not "hex")"},
  };
  for (const Case& c : cases) {
    const Read got = read(c.kind, c.body);
    EXPECT_FALSE(got.ok) << c.body;
    EXPECT_EQ(got.problem.param, c.param) << c.body;
    EXPECT_EQ(got.problem.message, c.message) << c.body;
  }
}

TEST(MockRequest, AReaderIsReusedWithoutMemory) {
  RequestReader reader;
  Ask ask;
  ASSERT_TRUE(
      reader.read(Kind::chat, chat_of(message("user", R"("a b")"), R"(,"stream":true,"max_tokens":4)"), 0, ask));
  ASSERT_FALSE(reader.read(Kind::chat, "{}", 0, ask));
  ASSERT_TRUE(reader.read(Kind::chat, chat_of(message("user", R"("a b")")), 0, ask));
  EXPECT_FALSE(ask.stream);
  EXPECT_FALSE(ask.cap.has_value());
  EXPECT_EQ(ask.prompt_tokens, 2u);
  EXPECT_TRUE(reader.problem().message.empty());
}

}  // namespace
}  // namespace headgate::mock
