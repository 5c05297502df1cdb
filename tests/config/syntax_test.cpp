// What is JSON to us, and the line of what is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "config/json_text.hpp"
#include "config/node.hpp"
#include "config_text.hpp"

namespace headgate::config {
namespace {

std::string plain(std::string_view text) {
  Problems problems;
  return plain_json(text, problems).value_or("(none)");
}

TEST(JsonText, BlanksCommentsAndTrailingCommasInPlace) {
  struct Row {
    const char *text, *plain;
  };
  const Row rows[] = {{"1 // a", "1     "},
                      {"1 /* a\n b */ 2", "1     \n      2"},
                      {"[1,]", "[1 ]"},
                      {"{\"a\": 1, /* x */ }", "{\"a\": 1          }"},
                      {"[1,\n// c\n]", "[1 \n    \n]"},
                      {"[,]", "[,]"},
                      {"[1,,]", "[1,,]"},
                      {"{,}", "{,}"},
                      {"\"// no\"", "\"// no\""},
                      {"\"/* no */,]\"", "\"/* no */,]\""},
                      {"\"a\\\"// no\"", "\"a\\\"// no\""},
                      {"[\"a\\\\\",] // x", "[\"a\\\\\" ]     "},
                      {"/", "/"},
                      {"\"open", "\"open"}};
  for (const Row& row : rows) EXPECT_EQ(plain(row.text), row.plain) << row.text;
}

TEST(JsonText, AcceptsCommentsAndTrailingCommasInAFile) {
  const Loaded loaded = load(R"(// first
{
  "listen": {"allow_anonymous": true,}, // why
  /* pools: "routes": 1, */
  "pools": {"small": {"backends": [{"url": "http://127.0.0.1:9001",},],},},
  "routes": {"chat": {"pools": ["small",]}},
}
// last)");
  EXPECT_TRUE(loaded.options) << all_of(loaded);
}

TEST(Syntax, EveryFaultHasItsLine) {
  struct Row {
    const char* what;
    std::string text;
    unsigned line;
    const char* message;
  };
  const Row rows[] = {
      {"empty", "", 1, "unexpected end of input"},
      {"blank", "\n\n", 2, "unexpected end of input"},
      {"cut inside an object", "{\n\"workers\": 1,\n\"drain\":", 3, "unexpected end of input"},
      {"cut inside a string", "{\n\"workers\": \"abc", 2, "missing closing quote"},
      {"comma left out", "{\n\"workers\": 1\n\"drain\": \"1s\"}", 3, "expected '}'"},
      {"colon left out", "{\n\n\"workers\" 1}", 3, "expected ':'"},
      {"two commas", "{\n\"workers\": 1,,\n}", 2, "expected string literal"},
      {"comma alone", "{\"keys\": [\n,]}", 2, "unexpected ','"},
      {"word", "{\n\"workers\": one}", 2, "invalid literal"},
      {"single quotes", "{\n'workers': 1}", 2, "invalid literal"},
      {"second value", "{}\n{}", 2, "unexpected '{'"},
      {"comment left open", "{\n/* x\n\n}", 2, "comment that begins here"},
      {"line end in a string", "{\n\"a\": \"b\n\"}", 2, "control character"},
      {"bad UTF-8", "{\n\"a\": \"\xff\"}", 2, "ill-formed UTF-8"},
      {"NUL", std::string("{\n}\0{", 5), 2, "NUL byte"},
      {"number too large", "{\n\n\"workers\": 1e999}", 3, "number overflow"},
      {"too deep", "{\"a\":\n" + std::string(40, '['), 2, "nested deeper than 32 levels"},
  };
  for (const Row& row : rows) {
    const Loaded loaded = load(row.text);
    EXPECT_FALSE(loaded.options) << row.what;
    ASSERT_EQ(loaded.problems.size(), 1u) << row.what << "\n" << all_of(loaded);
    EXPECT_EQ(loaded.problems[0].line, row.line) << row.what << "\n" << all_of(loaded);
    EXPECT_NE(loaded.problems[0].message.find(row.message), std::string::npos) << row.what << "\n" << all_of(loaded);
  }
}

TEST(Syntax, EveryTruncationOfAGoodFileIsOneSyntaxErrorInsideIt) {
  const std::string text = text_of({});
  ASSERT_TRUE(load(text).options) << all_of(load(text));
  const auto lines = static_cast<unsigned>(std::count(text.begin(), text.end(), '\n'));
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    const Loaded loaded = load(std::string_view(text).substr(0, length));
    ASSERT_EQ(loaded.problems.size(), 1u) << length;
    EXPECT_EQ(loaded.problems[0].message.rfind("syntax error", 0), 0u) << all_of(loaded);
    EXPECT_GE(loaded.problems[0].line, 1u);
    EXPECT_LE(loaded.problems[0].line, lines);
  }
}

TEST(Syntax, NeverQuotesWhatWasReadLast) {
  for (const char* text : {"{\"admin\": {\"token\": \"sk-hidden\n\"}}", "{\"admin\": {\"token\": \"sk-hidden\xff\"}}",
                           "{\"admin\": {\"token\": \"sk-hidden", "{\"admin\": {\"token\": \"sk-hidden\\q\"}}",
                           "{\"admin\": {\"token\": \"'; expected sk-hidden\n\"}}"}) {
    EXPECT_EQ(all_of(load(text)).find("sk-hidden"), std::string::npos) << all_of(load(text));
  }
}

TEST(Syntax, LinesAreThoseOfTheValueAlsoWithCarriageReturns) {
  const Loaded loaded = load("{\r\n\"workers\": 0,\r\n\"seed\": -1\r\n,\r\n\"drain\": 5\r\n}\r\n");
  ASSERT_GE(loaded.problems.size(), 3u) << all_of(loaded);
  const auto line_of = [&](const std::string& path) {
    for (const Problem& p : loaded.problems) {
      if (p.path == path) return p.line;
    }
    return 0u;
  };
  EXPECT_EQ(line_of("$.workers"), 2u);
  EXPECT_EQ(line_of("$.seed"), 3u);
  EXPECT_EQ(line_of("$.drain"), 5u);
}

TEST(Syntax, BoundsTheFileItsValuesAndTheProblems) {
  const Loaded large = load(std::string(file_bytes_max + 1, ' '));
  ASSERT_EQ(large.problems.size(), 1u);
  EXPECT_NE(large.problems[0].message.find("at most 8 MiB"), std::string::npos);

  std::string many = "{\"keys\": [\n";
  for (int i = 0; i < 200'001; ++i) many += "1,";
  const Loaded values = load(many + "1]}");
  ASSERT_EQ(values.problems.size(), 1u);
  EXPECT_NE(values.problems[0].message.find("more than 200000 values"), std::string::npos) << all_of(values);

  std::string unknown = "{";
  for (int i = 0; i < 1500; ++i) unknown += "\"x" + std::to_string(i) + "\": 1,\n";
  const Loaded problems = load(unknown + "}");
  ASSERT_EQ(problems.problems.size(), Problems::max_kept + 1);
  // 1,500 unknown fields, pools, routes and keys missing; 1,000 are shown
  EXPECT_EQ(problems.problems.back().message, "503 more problems are not shown");
}

}  // namespace
}  // namespace headgate::config
