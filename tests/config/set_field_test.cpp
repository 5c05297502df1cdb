// Values set from outside of the file: what they reach, what they leave, how a wrong one is reported.
#include "config/set_field.hpp"

#include <gtest/gtest.h>

#include "config_text.hpp"

namespace headgate::config {
namespace {

using namespace std::chrono_literals;

Loaded set(const std::string& text, std::vector<std::string> sets) { return load_text(text, environment_of({}), sets); }
std::string problem_of(const std::string& text, const std::string& one) { return all_of(set(text, {one})); }

TEST(SetField, ReplacesAValueOrAddsOneThatTheFileLeavesOut) {
  const Loaded loaded = set(with_pool(R"("queue": {"requests_max": 7})"),
                            {"pools.small.queue.requests_max=9", "$.pools.small.queue.wait_max=250ms",
                             "pools.small.backends[0].slots=3", "limits.head_time=2s", "log.access=\"off\""});
  ASSERT_TRUE(loaded.options) << all_of(loaded);
  const PoolOptions& pool = loaded.options->pools.at("small");
  EXPECT_EQ(pool.queue.requests_max, 9u);
  EXPECT_EQ(pool.queue.wait_max, 250ms);
  EXPECT_EQ(pool.backends[0].slots, 3u);
  EXPECT_EQ(loaded.options->limits.head_time, 2s);
  EXPECT_EQ(loaded.options->log.access, "off");
}

TEST(SetField, TheLastOfTwoWins) {
  const Loaded loaded = set(with_pool(""), {"workers=2", "workers=3"});
  ASSERT_TRUE(loaded.options) << all_of(loaded);
  EXPECT_EQ(loaded.options->workers, 3u);
}

TEST(SetField, TakesListsObjectsAndNamesWithDots) {
  const Loaded loaded =
      set(text_of({.routes = R"({"a.b=c": {"pools": ["small"]}})"}),
          {R"(routes["a.b=c"].retry.attempts_max=1)", R"(cors.origins=["https://a.example"])",
           R"(pools.small.backends=[{"url": "http://127.0.0.1:9002"}, {"url": "http://127.0.0.1:9003"}])"});
  ASSERT_TRUE(loaded.options) << all_of(loaded);
  EXPECT_EQ(loaded.options->routes.at("a.b=c").retry.attempts_max, 1u);
  EXPECT_EQ(loaded.options->cors.origins, std::vector<std::string>{"https://a.example"});
  EXPECT_EQ(loaded.options->pools.at("small").backends.size(), 2u);
}

TEST(SetField, SaysWhichStepIsWrongAndWhatWasMeant) {
  struct Row {
    const char *set, *problem;
  };
  const Row rows[] = {
      {"pools.small.queue.request_max=9",
       "f: $.pools.small.queue: has no field \"request_max\"; did you mean \"requests_max\"? (--set)\n"},
      {"pools.smal.queue.requests_max=9", "f: $.pools: has no entry \"smal\"; did you mean \"small\"? (--set)\n"},
      {"pools.small.backends[1].slots=3", "f: $.pools.small.backends: has no item [1]; there is only [0] (--set)\n"},
      {"pools.small.backends.slots=3", "f: $.pools.small.backends: is a list: [0] is its first item (--set)\n"},
      {"$=1", "f: \"$=1\" must be PATH=VALUE, such as pools.small.queue.requests_max=4 (--set)\n"},
      {"$pools=1", "f: \"$pools=1\" must be PATH=VALUE, such as pools.small.queue.requests_max=4 (--set)\n"},
      {"cors.origins[0]=1", "f: $.cors.origins: has no item [0]; the file has no items there (--set)\n"},
      {"pools[0]=3", "f: $.pools: is an object: a name must follow (--set)\n"},
      {"workers.more=3", "f: $.workers: is a single value: nothing can stand behind it (--set)\n"},
      {"workers=0", "f: $.workers: is 0, must be 1..256 (--set)\n"},
      {"workers", "f: \"workers\" must be PATH=VALUE, such as pools.small.queue.requests_max=4 (--set)\n"},
      {"pools..small=1",
       "f: \"pools..small=1\" must be PATH=VALUE, such as pools.small.queue.requests_max=4 (--set)\n"},
      {"pools.small.backends[x]=1",
       "f: \"pools.small.backends[x]=1\" must be PATH=VALUE, such as pools.small.queue.requests_max=4 "
       "(--set)\n"}};
  for (const Row& row : rows) EXPECT_EQ(problem_of(text_of({}), row.set), row.problem) << row.set;
}

}  // namespace
}  // namespace headgate::config
