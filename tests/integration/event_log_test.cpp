// The event log of a live process, replayed: every order equal; and nothing secret in it.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/answers.hpp"
#include "support/child_process.hpp"
#include "support/gateway_process.hpp"

namespace headgate::support {
namespace {

class EventLogCase : public testing::Test {
 protected:
  EventLogCase() {
    std::string pattern = (std::filesystem::temp_directory_path() / "headgate-events-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    log_ = folder_ + "/events.log";
  }
  ~EventLogCase() override { std::filesystem::remove_all(folder_); }

  Started with_log() const { return {.options = {"--event-log", log_}}; }
  static std::string text_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  // Standard output of headgate, which must end with that code.
  static std::string run(const std::vector<std::string>& arguments, int code) {
    ChildProcess process(arguments);
    EXPECT_EQ(process.exit_code(60s * time_factor), code) << process.output();
    return process.output();
  }

  std::string folder_, log_;
};

TEST_F(EventLogCase, ReplaysALiveProcessThatSawFaultsAndAReload) {
  ScriptedUpstream good(good_answer()), bad(always(plain_reply(500, "{}"))), further(good_answer());
  auto config = basic_config({&good, &bad});
  config["workers"] = 2;
  config["routes"]["m"]["retry"]["attempts_max"] = 3;
  config["pools"]["p"]["queue"]["requests_max"] = 20;
  for (auto& backend : config["pools"]["p"]["backends"]) backend["slots"] = 2;
  const std::string prompt = "a prompt of its own";
  GatewayProcess gateway(config, with_log());
  std::atomic<std::size_t> answered{0};
  std::vector<std::jthread> callers;
  for (int n = 0; n < 8; ++n) {
    callers.emplace_back([&](const std::stop_token& stopped) {
      RawClient client(gateway.port());
      for (; !stopped.stop_requested(); ++answered) client.ask(chat_request(chat_body(false)), 30s);
    });
  }
  ASSERT_TRUE(eventually(20s, [&] { return answered > 60; }));
  auto reloaded = config;
  reloaded["pools"]["p"]["backends"].push_back(backend_config("u3", further.port(), 1));
  reloaded["pools"]["p"]["backends"].erase(0);
  gateway.rewrite_config(reloaded);
  ASSERT_EQ(gateway.admin_post("/admin/reload").status, 200);
  ASSERT_EQ(gateway.admin_post("/admin/backends/p/u2", R"({"drained":true})").status, 200);
  ASSERT_TRUE(eventually(20s, [&] { return answered > 160; }));
  RawClient leaver(gateway.port());
  leaver.send(chat_request(R"({"model":"m","messages":[{"role":"user","content":")" + prompt + R"("}]})"));
  leaver.close();
  callers.clear();
  EXPECT_EQ(gateway.metric("headgate_event_log_lost_total"), 0);
  gateway.signal(SIGTERM);
  ASSERT_EQ(gateway.exit_code(20s), 0);

  const std::string out = folder_ + "/replayed.json";
  run({"simulate", "--replay", log_, "--json", out}, 0);
  const auto summary = nlohmann::json::parse(text_of(out));
  EXPECT_EQ(summary["equal"], true);
  EXPECT_EQ(summary["plans"], 2);
  EXPECT_GT(summary["orders"], 160);
  EXPECT_FALSE(summary.contains("note")) << summary;
  const std::string text = text_of(log_);
  for (const std::string& secret : {std::string("\"GW1\""), std::string("\"K1\""), prompt})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;

  const std::string told = run({"simulate", gateway.config_path(), "--trace", log_, "--model", "m"}, 0);
  EXPECT_NE(told.find("requests"), std::string::npos) << told;
}

// One unit and no queue for four callers: most are refused at once, and the file has its size soon.
TEST_F(EventLogCase, GoesOnInANewFileThatIsReplayedByItself) {
  ScriptedUpstream good(good_answer());
  auto config = basic_config({&good});
  config["workers"] = 2;
  config["pools"]["p"]["queue"]["requests_max"] = 0;
  config["pools"]["p"]["backends"][0]["slots"] = 1;
  GatewayProcess gateway(config, {.options = {"--event-log", log_, "--event-log-max", "1MiB"}});
  std::vector<std::jthread> callers;
  for (int n = 0; n < 4; ++n) {
    callers.emplace_back([&](const std::stop_token& stopped) {
      RawClient client(gateway.port());
      while (!stopped.stop_requested()) client.ask(chat_request(chat_body(false)), 30s);
    });
  }
  const auto moved = [&] { return std::filesystem::exists(log_ + ".1"); };
  ASSERT_TRUE(eventually(60s * time_factor, moved));
  ASSERT_TRUE(eventually(20s, [&] { return std::filesystem::file_size(log_) > 100'000; }));
  callers.clear();
  EXPECT_EQ(gateway.metric("headgate_event_log_open"), 1);
  gateway.signal(SIGTERM);
  ASSERT_EQ(gateway.exit_code(20s), 0);
  EXPECT_NE(run({"simulate", "--replay", log_ + ".1"}, 0).find("the log goes on in another file"), std::string::npos);
  EXPECT_NE(run({"simulate", "--replay", log_}, 0).find("every order is equal"), std::string::npos);
}

TEST_F(EventLogCase, OfAKilledProcessHoldsWhatCameBefore) {
  ScriptedUpstream good(good_answer());
  {
    GatewayProcess gateway(basic_config({&good}), with_log());
    EXPECT_EQ(ask_once(gateway.port(), chat_request(chat_body(false))).status, 200);
    ASSERT_TRUE(eventually(20s, [&] { return std::filesystem::file_size(log_) > 1500; }));
    gateway.signal(SIGKILL);
    ASSERT_TRUE(gateway.exit_code(20s));
  }
  EXPECT_NE(run({"simulate", "--replay", log_}, 0).find("its process still runs, or was killed"), std::string::npos);
}

TEST_F(EventLogCase, SaysWhatItCannotReplay) {
  std::ofstream(log_) << "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  EXPECT_NE(run({"simulate", "--replay", log_}, 2).find("no event log"), std::string::npos);
  EXPECT_NE(run({"simulate", "--replay", folder_ + "/none"}, 2).find("cannot be opened"), std::string::npos);
  EXPECT_NE(run({"serve", "--event-log-max", "7", "x.jsonc"}, 2).find("1MiB or more"), std::string::npos);
}

}  // namespace
}  // namespace headgate::support
