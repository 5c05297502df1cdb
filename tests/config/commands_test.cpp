#include "config/commands.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "config/catalog.hpp"
#include "config_text.hpp"

namespace headgate::config {
namespace {

const std::string source_dir = HEADGATE_SOURCE_DIR;

struct Ran {
  int code;
  std::string out, err;
};

Ran run_check(const std::string& file, bool json = false) {
  std::ostringstream out, err;
  const int code = check(file, json, out, err);
  return {code, out.str(), err.str()};
}

class File {
 public:
  explicit File(const std::string& text) {
    path_ = (std::filesystem::temp_directory_path() / "headgate-check-XXXXXX").string();
    const int fd = mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    std::ofstream(path_) << text;
    if (fd >= 0) ::close(fd);
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Examples, AllLoadAndMakeACatalog) {
  std::size_t examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir + "/config/examples")) {
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    const Loaded loaded = load(text.str(), {{"HEADGATE_ADMIN_TOKEN", "t"}, {"OPS_KEY", "o"}, {"UPSTREAM_KEY", "u"}});
    ASSERT_TRUE(loaded.options) << entry.path() << "\n" << all_of(loaded);
    IdBook ids;
    EXPECT_FALSE(make_catalog(*loaded.options, ids, 1)->routes.empty());
    ++examples;
  }
  EXPECT_GE(examples, 3u);
}

TEST(Examples, TheDemoIsTwoPoolsOfTwoBehindTwoRoutes) {
  const Ran ran = run_check(source_dir + "/config/examples/demo.jsonc");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, source_dir + "/config/examples/demo.jsonc: ok: 2 pools, 4 backends, 2 routes\n");
  EXPECT_EQ(ran.err, "");
}

TEST(Reference, IsCurrent) {
  std::ifstream in(source_dir + "/config/reference.md");
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), reference()) << "write it anew: headgate schema --reference > config/reference.md";
}

TEST(Reference, HasASectionForEveryObject) {
  const std::string text = reference();
  for (const char* part :
       {"## Top level", "## `listen`", "## `keys[]`", "## `pools.POOL`", "## `pools.POOL.backends[]`",
        "## `pools.POOL.health`", "## `routes.MODEL.retry`", "| `slots` | whole number | `16` | 1..100000 |",
        "| `connect` | duration | `\"2s\"` | 1ms..5m |",
        "| `url` | text | required | http://host:port or https://host:port |"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST(Check, PrintsEveryProblemAndFailsWithTwo) {
  const File file("{\n\"worker\": 1,\n\"pools\": {},\n\"routes\": {\"a\": {\"pools\": [\"x\"]}}}");
  const Ran ran = run_check(file.path());
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err,
            file.path() +
                ":1: $.keys: is missing: nobody could call; add keys, or set $.listen.allow_anonymous to true\n" +
                file.path() + ":2: $.worker: unknown field; did you mean \"workers\"?\n" + file.path() +
                ":3: $.pools: is empty, must have 1..1000\n");
}

TEST(Check, AsJsonListsTheSame) {
  const File file("{\n\"worker\": 1,\n\"pools\": {},\n\"routes\": {\"a\": {\"pools\": [\"x\"]}}}");
  const Ran ran = run_check(file.path(), true);
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err, "");
  const auto report = nlohmann::json::parse(ran.out);
  EXPECT_EQ(report["file"], file.path());
  EXPECT_EQ(report["ok"], false);
  ASSERT_EQ(report["problems"].size(), 3u);
  EXPECT_EQ(report["problems"][1]["line"], 2);
  EXPECT_EQ(report["problems"][1]["path"], "$.worker");
}

TEST(Check, AsJsonShowsTheEffectiveConfigWithoutSecrets) {
  const File file(with_pool(R"("api_key": "sk-hidden")"));
  const Ran ran = run_check(file.path(), true);
  EXPECT_EQ(ran.code, 0);
  const auto report = nlohmann::json::parse(ran.out);
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(report["backends"], 1);
  EXPECT_EQ(report["config"]["pools"]["small"]["api_key"], "***");
  EXPECT_EQ(report["config"]["pools"]["small"]["backends"][0]["name"], "b1");
  EXPECT_EQ(report["config"]["routes"]["chat"]["timeouts"]["connect"], "2s");
  EXPECT_EQ(ran.out.find("sk-hidden"), std::string::npos);
}

TEST(Check, AFileThatCannotBeReadIsAProblem) {
  const Ran missing = run_check("/nonexistent/headgate.jsonc");
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err, "/nonexistent/headgate.jsonc: cannot be opened: No such file or directory\n");
  const Ran folder = run_check(source_dir);
  EXPECT_EQ(folder.code, 2);
  EXPECT_EQ(folder.err, source_dir + ": cannot be read: Is a directory\n");
}

TEST(Check, ReadsTheProcessEnvironment) {
  const File file(with_pool(R"("api_key": "${HEADGATE_CHECK_TEST_KEY}")"));
  unsetenv("HEADGATE_CHECK_TEST_KEY");
  EXPECT_EQ(run_check(file.path()).err, file.path() +
                                            ":3: $.pools.small.api_key: needs the environment variable "
                                            "HEADGATE_CHECK_TEST_KEY, which is not set\n");
  setenv("HEADGATE_CHECK_TEST_KEY", "sk-1", 1);
  EXPECT_EQ(run_check(file.path()).code, 0);
  unsetenv("HEADGATE_CHECK_TEST_KEY");
}

}  // namespace
}  // namespace headgate::config
