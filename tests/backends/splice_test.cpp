#include "backends/wire/splice.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace headgate::wire {
namespace {

std::string joined(Splice& splice, std::string_view body) {
  std::string text;
  for (const std::string_view piece : splice.pieces(body)) {
    EXPECT_FALSE(piece.empty());
    text += piece;
  }
  EXPECT_EQ(text.size(), splice.size(body));
  return text;
}

TEST(Splice, WithoutEditsIsTheBody) {
  Splice splice;
  const std::string body = "abc";
  EXPECT_EQ(joined(splice, body), body);
  ASSERT_EQ(splice.pieces(body).size(), 1u);
  EXPECT_EQ(splice.pieces(body)[0].data(), body.data());
}

TEST(Splice, ReplacesInsertsAndRemovesInAnyOrder) {
  Splice splice;
  splice.replace({6, 8}, "");
  splice.replace({0, 1}, "AAA");
  splice.replace({10, 10}, "!");
  splice.replace({3, 3}, "-");
  EXPECT_EQ(joined(splice, "0123456789"), "AAA12-34589!");
  splice.clear();
  EXPECT_EQ(joined(splice, "0123456789"), "0123456789");
  splice.replace({0, 10}, "x");
  EXPECT_EQ(joined(splice, "0123456789"), "x");
}

TEST(Splice, KeepsTheOrderOfInsertionsAtOnePlace) {
  Splice splice;
  splice.replace({1, 1}, "x");
  splice.replace({1, 1}, "y");
  splice.replace({1, 2}, "z");
  EXPECT_EQ(joined(splice, "abc"), "axyzc");
}

// Skims `body`, edits it and gives back what the backend would get.
std::string edited(const std::string& body, const char* model, bool usage) {
  const std::string padded = body + std::string(json_padding, '"');
  const std::string_view view = std::string_view(padded).substr(0, body.size());
  Skimmer skimmer;
  Skim skim;
  EXPECT_EQ(skimmer.skim(view, skim), SkimError::none) << skimmer.problem();
  Splice splice;
  if (usage) ask_for_usage(splice, skim);
  if (model != nullptr) set_model(splice, skim, model);
  return joined(splice, view);
}

TEST(SetModel, ChangesNothingButTheName) {
  EXPECT_EQ(edited(R"({ "a" : 12345678901234567890 , "model" : "x" , "b":"\u00e9" })", "longer-name", false),
            R"({ "a" : 12345678901234567890 , "model" : "longer-name" , "b":"\u00e9" })");
  EXPECT_EQ(edited(R"({"model":""})", "a", false), R"({"model":"a"})");
  EXPECT_EQ(edited(R"({"m\u006fdel":"\"x"})", "a\"b\\c\n\x01", false), R"({"m\u006fdel":"a\"b\\c\n\u0001"})");
}

TEST(AskForUsage, AddsOnlyWhatIsMissing) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"model":"x","stream":true})", R"({"stream_options":{"include_usage":true},"model":"x","stream":true})"},
      {R"({ "model":"x"})", R"({"stream_options":{"include_usage":true}, "model":"x"})"},
      {R"({"model":"x","stream_options":null})", R"({"model":"x","stream_options":{"include_usage":true}})"},
      {R"({"model":"x","stream_options":{ }})", R"({"model":"x","stream_options":{"include_usage":true}})"},
      {R"({"model":"x","stream_options":{"a":1}})", R"({"model":"x","stream_options":{"include_usage":true,"a":1}})"},
      {R"({"model":"x","stream_options":{"a":1,"include_usage" : false}})",
       R"({"model":"x","stream_options":{"a":1,"include_usage" : true}})"},
      {R"({"model":"x","stream_options":{"include_usage":null}})",
       R"({"model":"x","stream_options":{"include_usage":true}})"},
      {R"({"model":"x","stream_options":{"include_usage":true}})",
       R"({"model":"x","stream_options":{"include_usage":true}})"},
  };
  for (const auto& [body, wanted] : cases) {
    EXPECT_EQ(edited(body, nullptr, true), wanted);
    const nlohmann::json parsed = nlohmann::json::parse(edited(body, "y", true));
    EXPECT_EQ(parsed["model"], "y") << body;
    EXPECT_EQ(parsed["stream_options"]["include_usage"], true) << body;
  }
}

TEST(JsonQuoted, ReadsBackAsTheSameText) {
  std::string text = "plain \"quoted\" \\ / \xc3\xa9 ";
  for (char c = 0; c < 0x20; ++c) text.push_back(c);
  EXPECT_EQ(nlohmann::json::parse(json_quoted(text)), text);
  EXPECT_EQ(json_quoted("a\"\\\n\x1f"), R"("a\"\\\n\u001f")");
  EXPECT_EQ(json_quoted(""), R"("")");
}

}  // namespace
}  // namespace headgate::wire
