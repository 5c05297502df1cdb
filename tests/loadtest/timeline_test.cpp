#include "loadtest/timeline.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "support/waiting.hpp"

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

TEST(Timeline, ReadsAnEventWithACommandThatHoldsSemicolons) {
  std::string problem;
  const auto event =
      parse_event("at=1/3;label=killed small/b1;kill=small/b1;streams=5;run=kill -9 7; echo a=b", problem);
  ASSERT_TRUE(event) << problem;
  EXPECT_EQ(event->when.at, 0ns);
  EXPECT_NEAR(event->when.share, 1.0 / 3, 1e-9);
  EXPECT_NEAR(static_cast<double>(event->when.in(9s).count()), 3e9, 10);
  EXPECT_EQ(event->label, "killed small/b1");
  EXPECT_EQ(event->kill, "small/b1");
  EXPECT_EQ(event->streams_min, 5u);
  EXPECT_EQ(event->command, "kill -9 7; echo a=b");
  EXPECT_EQ(parse_event("at=15s;run=true", problem)->when.in(9s), Nanos{15s});
  EXPECT_EQ(parse_event("at=0.5;run=true", problem)->label, "true");
}

TEST(Timeline, RefusesWhatItCannotRead) {
  for (const char* text :
       {"", "run=true", "at=1/2", "at=2;run=true", "at=nan;run=true", "at=1s;streams=nan;run=true", "at=soon;run=true",
        "at=1/0;run=true", "when=1;run=true", "at=1/2;streams=-1;run=true", "at=1/2;run="}) {
    std::string problem;
    EXPECT_FALSE(parse_event(text, problem)) << text;
    EXPECT_TRUE(problem.starts_with("event: ")) << text;
  }
}

TEST(Timeline, RunsACommandAndGivesItsExitCode) {
  const pid_t pid = spawn_shell("exit 7");
  ASSERT_GT(pid, 0);
  int exit_code = -1;
  EXPECT_TRUE(support::eventually(10s, [&] { return reap(pid, exit_code); }));
  EXPECT_EQ(exit_code, 7);
}

TEST(Timeline, LeavesNoDescriptorToItsCommands) {
  const std::string path = "/tmp/headgate_timeline_" + std::to_string(getpid());
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t pid = spawn_shell("ls /proc/self/fd | wc -l >" + path);
  int exit_code = -1;
  EXPECT_TRUE(support::eventually(10s, [&] { return reap(pid, exit_code); }));
  close(pipes[0]);
  close(pipes[1]);
  std::FILE* file = std::fopen(path.c_str(), "r");
  ASSERT_NE(file, nullptr);
  int open = 0;
  EXPECT_EQ(std::fscanf(file, "%d", &open), 1);
  std::fclose(file);
  std::remove(path.c_str());
  EXPECT_LE(open, 4);  // three standard ones and the directory ls reads
}

// A story of small numbers: the kill of "p/a" happens at 20 s and takes 5 ms.
struct Kill : testing::Test {
  Kill() {
    event.kill = "p/a";
    happened.state = Happened::State::done;
    happened.begun = 20s;
    happened.ended = 20s + 5ms;
  }
  std::uint64_t add(const std::string& backend, Outcome outcome, Nanos intended, Nanos first, Nanos ended) {
    Record record;
    record.backend = names.number(backend);
    record.outcome = outcome;
    record.intended = intended;
    record.first = first;
    record.last = record.ended = ended;
    records.push_back(record);
    return records.size() - 1;
  }
  KillAnalysis analyse() const { return analyse_kill(event, happened, {}, records, names); }

  TimelineEvent event;
  Happened happened;
  std::vector<Record> records;
  Names names;
};

TEST_F(Kill, IsExactWhenTheCutStreamsAreThoseItWasSending) {
  for (int k = 0; k < 5; ++k) happened.sending.push_back(add("p/a", Outcome::cut, 18s, 19s, 20s + 20ms));
  add("p/b", Outcome::ok, 18s, 19s, 25s);
  add("p/a", Outcome::ok, 10s, 11s, 19s);
  const KillAnalysis kill = analyse();
  EXPECT_TRUE(kill.exact);
  EXPECT_EQ(kill.sending, 5u);
  EXPECT_EQ(kill.cut, 5u);
  EXPECT_EQ(kill.unexplained, 0u);
}

TEST_F(Kill, ExplainsWhatWasOnItsWay) {
  happened.sending.push_back(add("p/a", Outcome::ok, 18s, 19s, 20s + 100ms));  // its last bytes had left the backend
  add("p/a", Outcome::cut, 19s, 20s + 100ms, 20s + 150ms);                     // its first content had
  const KillAnalysis kill = analyse();
  EXPECT_TRUE(kill.exact);
  EXPECT_EQ(kill.finished_on_the_way, 1u);
  EXPECT_EQ(kill.begun_on_the_way, 1u);
}

TEST_F(Kill, IsNotExactWhenAStreamOutlivesIt) {
  happened.sending.push_back(add("p/a", Outcome::ok, 18s, 19s, 23s));
  EXPECT_FALSE(analyse().exact);
  EXPECT_EQ(analyse().unexplained, 1u);
}

TEST_F(Kill, IsNotExactWhenAnUnknownStreamIsCut) {
  add("p/a", Outcome::cut, 18s, 19s, 22s);
  EXPECT_FALSE(analyse().exact);
}

TEST_F(Kill, IsNotExactWhenAStreamEndsWithoutItsEvent) {
  happened.sending.push_back(add("p/a", Outcome::cut_dirty, 18s, 19s, 20s + 20ms));
  EXPECT_FALSE(analyse().exact);
  EXPECT_EQ(analyse().cut_dirty, 1u);
}

TEST_F(Kill, CostsTheDifferenceOfTheTwoTenSeconds) {
  for (int k = 0; k < 100; ++k) add("p/b", Outcome::ok, 10s + 50ms * k, 10s + 50ms * k + 100ms, 30s);
  for (int k = 0; k < 100; ++k) add("p/b", Outcome::ok, 20s + 50ms * k, 20s + 50ms * k + 300ms, 40s);
  add("p/b", Outcome::ok, 9s, 19s, 30s);  // before the window
  EXPECT_DOUBLE_EQ(analyse().ttft_p99_before_ms, 100);
  EXPECT_DOUBLE_EQ(analyse().ttft_p99_after_ms, 300);
}

}  // namespace
}  // namespace headgate::loadtest
