// ${ENV} inside strings, and that no secret is ever printed.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "config/environment.hpp"
#include "config_text.hpp"

namespace headgate::config {
namespace {

TEST(Environment, IsPutIntoStrings) {
  const auto environment = environment_of({{"A", "one"}, {"B_2", "two"}, {"_c", ""}, {"D", "${A}"}});
  struct Row {
    const char *text, *expanded;
  };
  const Row rows[] = {{"", ""},        {"plain", "plain"}, {"${A}", "one"},     {"x${A}y${B_2}z", "xoneytwoz"},
                      {"${_c}", ""},   {"$${A}", "${A}"},  {"$$${A}", "$${A}"}, {"$A $ {A} 5$", "$A $ {A} 5$"},
                      {"${D}", "${A}"}};  // a value is not looked into again
  for (const Row& row : rows) {
    const auto expanded = expand(row.text, environment);
    ASSERT_TRUE(expanded) << row.text << ": " << expanded.problem;
    EXPECT_EQ(*expanded, row.expanded) << row.text;
  }
}

TEST(Environment, WhatIsNotThereIsAProblem) {
  const auto environment = environment_of({{"A", "one"}, {"LONG", std::string(40'000, 'x')}});
  struct Row {
    const char *text, *problem;
  };
  const Row rows[] = {{"${NOPE}", "needs the environment variable NOPE, which is not set"},
                      {"${A", "has a ${ without its }; write $${ for a plain ${"},
                      {"${}", "has a ${...} that names no variable; write $${ for a plain ${"},
                      {"${a b}", "has a ${...} that names no variable; write $${ for a plain ${"},
                      {"${1A}", "has a ${...} that names no variable; write $${ for a plain ${"},
                      {"${LONG}${LONG}", "is longer than 64 KiB"}};
  for (const Row& row : rows) EXPECT_EQ(expand(row.text, environment).problem, row.problem) << row.text;
}

TEST(Environment, AMissingVariableHasItsLineAndPath) {
  const Loaded loaded = load(with_backends("[{\n\"url\": \"http://${HOST}:1\"}]"));
  ASSERT_EQ(loaded.problems.size(), 1u) << all_of(loaded);
  EXPECT_EQ(to_text(loaded.problems[0], "f"),
            "f:4: $.pools.small.backends[0].url: needs the environment variable HOST, which is not set");
}

TEST(Environment, ReachesEveryKindOfText) {
  const Loaded loaded = load(text_of({.extra = R"("drain": "${WAIT}s", "limits": {"body": "${SIZE}"},
    "listen": {"data": "127.0.0.1:${PORT}"}, "keys": [{"name": "a", "key": "${KEY}", "routes": ["${ROUTE}"]}],)",
                                      .pools = R"({"small": {"backends": [{"url": "http://${HOST}:1"}],
    "balance": "${BALANCE}", "api_key": "${KEY}2"}})"}),
                             {{"WAIT", "7"},
                              {"SIZE", "1MiB"},
                              {"PORT", "81"},
                              {"KEY", "sk-1"},
                              {"ROUTE", "chat"},
                              {"HOST", "gpu"},
                              {"BALANCE", "weighted"}});
  ASSERT_TRUE(loaded.options) << all_of(loaded);
  EXPECT_EQ(loaded.options->drain, 7s);
  EXPECT_EQ(loaded.options->limits.body, Bytes{1 << 20});
  EXPECT_EQ(loaded.options->listen.data, "127.0.0.1:81");
  EXPECT_EQ(loaded.options->keys[0].key.reveal(), "sk-1");
  EXPECT_EQ(loaded.options->keys[0].routes[0], "chat");
  const PoolOptions& pool = loaded.options->pools.at("small");
  EXPECT_EQ(pool.backends[0].url, "http://gpu:1");
  EXPECT_EQ(pool.balance, policies::Balance::weighted);
  EXPECT_EQ(pool.api_key.reveal(), "sk-12");
}

TEST(Secrets, AreNeverPartOfAProblem) {
  const std::map<std::string, std::string> environment{{"KEY", "sk-hidden with a space"}, {"LONG", "sk-hidden\n"}};
  for (const std::string& text : {
           with_pool(R"("api_key": "sk-hidden with a space")"),
           with_pool(R"("api_key": "${KEY}")"),
           with_pool(R"("api_key": "${LONG}")"),
           with_pool(R"("api_key": "sk-hidden${")"),
           with_pool(R"("api_key": "${sk-hidden}")"),
           with_pool(R"("api_key": "sk-hidden${NOPE}")"),
           with_pool(R"("api_key": ["sk-hidden"])"),
           with_pool(R"("api_key": {"sk": "sk-hidden"})"),
           with_pool(R"("api_kee": "sk-hidden")"),
           with_root(R"("admin": "sk-hidden")"),
           with_root(R"("admin": {"token": "sk-hidden", "token": "sk-hidden"})"),
           with_root(R"("keys": ["sk-hidden"])"),
           with_root(R"("keys": "sk-hidden")"),
           with_keys(R"([{"name": "a", "key": "sk-hidden"}, {"name": "b", "key": "sk-hidden"}])"),
           with_keys(R"([{"name": "a", "key": "sk-hidden", "sha256": "00"}])"),
           with_keys(R"([{"name": "a", "sha256": "sk-hidden"}])"),
           with_keys(R"([{"name": "a", "sha256": ["sk-hidden"]}])"),
           with_keys(R"([{"name": "a", "sha256": "sk-hidden${NOPE}"}])"),
           with_backends(R"([{"url": "http://me:sk-hidden@host"}])"),
       }) {
    const Loaded loaded = load(text, environment);
    EXPECT_FALSE(loaded.problems.empty()) << text;
    EXPECT_EQ(all_of(loaded).find("sk-hidden"), std::string::npos) << all_of(loaded);
  }
  const Loaded number = load(with_pool(R"("api_key": 8675309)"));
  EXPECT_EQ(all_of(number),
            "f:3: $.pools.small.api_key: is a number, has 7 characters (not shown), must be text in quotes\n");
}

TEST(Secrets, AProblemTellsTheirLength) {
  const Loaded pasted = load(with_keys(R"([{"name": "a", "sha256": "sk-plain-key-pasted-here"}])"));
  EXPECT_NE(all_of(pasted).find("sha256: has 24 characters (not shown), must be a SHA-256 digest"), std::string::npos)
      << all_of(pasted);
  const Loaded number = load(with_keys(R"([{"name": "a", "sha256": 8675309}])"));
  EXPECT_NE(all_of(number).find("sha256: is a number, has 7 characters (not shown), must be text"), std::string::npos)
      << all_of(number);
  const Loaded spaced = load(with_pool(R"("api_key": "sk with spaces")"));
  EXPECT_NE(all_of(spaced).find("api_key: has 14 characters (not shown), must be 1 to 4096 visible"), std::string::npos)
      << all_of(spaced);
}

TEST(Secrets, AreStarsInTheEffectiveConfig) {
  const Loaded loaded = load(R"({
    "listen": {"admin": "0.0.0.0:9090"}, "admin": {"token": "sk-hidden-1"},
    "keys": [{"name": "a", "key": "sk-hidden-2"}],
    "pools": {"small": {"api_key": "${KEY}", "backends": [{"url": "http://127.0.0.1:9001"}]}},
    "routes": {"chat": {"pools": ["small"]}}})",
                             {{"KEY", "sk-hidden-3"}});
  ASSERT_TRUE(loaded.options) << all_of(loaded);
  const std::string text = redacted(*loaded.options);
  EXPECT_EQ(text.find("sk-hidden"), std::string::npos) << text;
  for (const char* shown : {"\"token\": \"***\"", "\"key\": \"***\"", "\"api_key\": \"***\""}) {
    EXPECT_NE(text.find(shown), std::string::npos) << shown << text;
  }
}

}  // namespace
}  // namespace headgate::config
