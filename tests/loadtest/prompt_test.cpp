#include "loadtest/prompt.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "policies/base/tokens.hpp"

namespace headgate::loadtest {
namespace {

TEST(Prompt, HasExactlyTheWordsAskedFor) {
  for (const std::uint32_t words : {1u, 2u, 11u, 12u, 13u, 1155u, 14050u}) {
    EXPECT_EQ(count_words(prompt_text(3, 9, {.input = words})), words);
  }
}

TEST(Prompt, DependsOnSeedAndRequest) {
  EXPECT_EQ(prompt_text(1, 2, {.input = 50}), prompt_text(1, 2, {.input = 50}));
  EXPECT_NE(prompt_text(1, 2, {.input = 50}), prompt_text(1, 3, {.input = 50}));
  EXPECT_NE(prompt_text(1, 2, {.input = 50}), prompt_text(2, 2, {.input = 50}));
}

TEST(Prompt, SharesTheTextOfEqualHashIds) {
  const std::uint32_t a[] = {7, 8, 9}, b[] = {7, 8, 10};
  const std::string one = prompt_text(1, 2, {.input = 1100, .prefix = a}),
                    other = prompt_text(1, 3, {.input = 1200, .prefix = b});
  EXPECT_EQ(count_words(one), 1100u);
  EXPECT_EQ(count_words(other), 1200u);
  const std::size_t apart =
      static_cast<std::size_t>(std::mismatch(one.begin(), one.end(), other.begin()).first - one.begin());
  const std::size_t common = count_words(one.substr(0, apart));
  EXPECT_GE(common, 1024u);
  EXPECT_LE(common, 1030u) << "a word or two may be alike by chance";
}

nlohmann::json body_of(const std::string& request) {
  return nlohmann::json::parse(request.substr(request.find("\r\n\r\n") + 4));
}

TEST(Request, AsksForAStreamWithUsage) {
  Asking asking{Path::chat, "127.0.0.1:8080", "secret", 1};
  const std::string request = request_bytes(
      asking, {.name = "", .model = "a \"model\"", .klass = policies::Class::batch}, 0, {Nanos{0}, 30, 7, true});
  EXPECT_TRUE(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"));
  EXPECT_NE(request.find("\r\nAuthorization: Bearer secret\r\n"), request.npos);
  const auto body = body_of(request);
  EXPECT_NE(
      request.find("\r\nContent-Length: " + std::to_string(request.size() - request.find("\r\n\r\n") - 4) + "\r\n"),
      request.npos);
  EXPECT_EQ(body["model"], "a \"model\"");
  EXPECT_EQ(body["max_tokens"], 7);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_EQ(count_words(body["messages"][0]["content"].get<std::string>()), 30u);
}

TEST(Request, AsksForAUnaryCompletion) {
  Asking asking{Path::completions, "h:1", "", 1};
  const std::string request = request_bytes(asking, {.name = "", .model = "m"}, 0, {Nanos{0}, 3, 7, false});
  EXPECT_TRUE(request.starts_with("POST /v1/completions HTTP/1.1\r\n"));
  EXPECT_EQ(request.find("Authorization"), request.npos);
  const auto body = body_of(request);
  EXPECT_FALSE(body.contains("stream"));
  EXPECT_EQ(count_words(body["prompt"].get<std::string>()), 3u);
}

}  // namespace
}  // namespace headgate::loadtest
