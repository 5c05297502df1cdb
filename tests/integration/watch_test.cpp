// headgate serve --watch: the file's new text comes into use by itself, once, when it has rested for half a second.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "support/answers.hpp"
#include "support/child_process.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

namespace fs = std::filesystem;

class Watch : public testing::Test {
 protected:
  // The running file's text with another number of requests that may wait.
  std::string text_with(int waiting_max) const {
    auto config = nlohmann::json::parse(std::ifstream(gateway_.config_path()));
    config["pools"]["p"]["queue"]["requests_max"] = waiting_max;
    return config.dump(2);
  }
  void write(std::string_view text, std::ios::openmode how = std::ios::trunc) const {
    std::ofstream(gateway_.config_path(), std::ios::binary | how) << text;
  }
  void replace(std::string_view text) const { gateway_.rewrite_config(text); }
  double version() const { return gateway_.metric("headgate_config_version"); }
  double failed() const { return gateway_.metric("headgate_reloads_total", {{"result", "failed"}}); }
  bool reaches(double expected) const {
    return eventually(scaled(5s), [&] { return version() == expected; });
  }

  ScriptedUpstream upstream_{good_answer()};
  GatewayProcess gateway_{basic_config({&upstream_}), {.options = {"--watch"}}};
};

TEST_F(Watch, AFileReplacedByRenameAsEditorsDo) {
  replace(text_with(11));
  EXPECT_TRUE(reaches(2));
  replace(text_with(12));
  EXPECT_TRUE(reaches(3));
}

// Each half alone is wrong; the pause between them is shorter than what it waits for.
TEST_F(Watch, AFileWrittenInTwoHalvesIsReadOnce) {
  const std::string text = text_with(11);
  const Time begun = now();
  write(text.substr(0, text.size() / 2));
  std::this_thread::sleep_for(300ms);
  write(text.substr(text.size() / 2), std::ios::app);
  EXPECT_TRUE(reaches(2));
  EXPECT_GE(to_ms(now() - begun), 800);
  EXPECT_EQ(failed(), 0);
}

TEST_F(Watch, ABadFileIsSaidAndTheGoodOneAfterItIsTaken) {
  const std::string good = text_with(11);
  write("{\"listen\": 7}");
  EXPECT_TRUE(eventually(scaled(5s), [&] { return failed() == 1; }));
  EXPECT_EQ(version(), 1);
  EXPECT_NE(gateway_.output().find("$.listen"), std::string::npos) << gateway_.output();
  EXPECT_EQ(ask_once(gateway_.port(), chat_request(chat_body(false))).status, 200);
  write(good);
  EXPECT_TRUE(reaches(2));
}

// Written again without a change, and reloaded by request before the watch came to it: a third change tells that the
// moments of both have passed.
TEST_F(Watch, TheSameTextIsNotReadAgain) {
  std::string text = text_with(11);
  replace(text);
  EXPECT_EQ(gateway_.admin_post("/admin/reload").status, 200);
  std::this_thread::sleep_for(scaled(1s));  // the watch's moment
  EXPECT_EQ(version(), 2);
  write(text);
  std::this_thread::sleep_for(scaled(1s));
  EXPECT_EQ(version(), 2);
  write(text_with(12));
  EXPECT_TRUE(reaches(3));
}

// As Kubernetes mounts a ConfigMap: file -> ..data/file, ..data -> a folder of its own, swapped by rename.
TEST(WatchLinks, ASwappedLinkToTheFolder) {
  ScriptedUpstream upstream(good_answer());
  std::string pattern = (fs::temp_directory_path() / "headgate-links-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const fs::path mount = pattern;
  const auto place = [&](const std::string& folder, int waiting_max) {
    auto config = basic_config({&upstream});
    config["listen"] = {{"data", "127.0.0.1:0"}, {"admin", "127.0.0.1:0"}};
    config["pools"]["p"]["queue"]["requests_max"] = waiting_max;
    fs::create_directory(mount / folder);
    std::ofstream(mount / folder / "config.json") << config.dump(1);
    fs::create_directory_symlink(folder, mount / "..fresh");
    fs::rename(mount / "..fresh", mount / "..data");
  };
  place("..1", 11);
  fs::create_symlink("..data/config.json", mount / "config.json");
  ChildProcess serve({"serve", "--watch", "--config", mount / "config.json"});
  const auto says = [&](const char* what) {
    return eventually(scaled(10s), [&] { return serve.output().find(what) != std::string::npos; });
  };
  EXPECT_TRUE(says("configuration version 1"));
  place("..2", 12);
  EXPECT_TRUE(says("configuration version 2 is in use")) << serve.output();
  place("..3", 13);
  EXPECT_TRUE(says("configuration version 3 is in use")) << serve.output();
  fs::rename(mount, pattern + "-old");  // any folder of the path
  fs::create_directory(mount);
  EXPECT_TRUE(says("reload refused")) << serve.output();
  place("..4", 14);
  fs::create_symlink("..data/config.json", mount / "config.json");
  EXPECT_TRUE(says("configuration version 4 is in use")) << serve.output();
  fs::remove_all(pattern + "-old");
  serve.signal(SIGTERM);
  EXPECT_EQ(serve.exit_code(scaled(5s)), 0);
  fs::remove_all(mount);
}

}  // namespace
}  // namespace headgate::support
