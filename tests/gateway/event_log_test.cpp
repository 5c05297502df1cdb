#include "gateway/event_log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

namespace headgate::gateway {
namespace {

class EventLogFile : public testing::Test {
 protected:
  EventLogFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "headgate-events-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    file_ = folder_ + "/events";
  }
  ~EventLogFile() override { std::filesystem::remove_all(folder_); }

  static std::string text_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  // What the records are, in order; Ticked ones must be numbered by their times, without a hole but for the gaps.
  struct Found {
    std::uint64_t ticks = 0, lost = 0, closed = 0, gaps = 0;
    bool continued = false;
    std::string image;  // that it begins with
  };
  static Found read(std::string_view records) {
    Found found;
    config::EventReader reader(records);
    config::Event event;
    while (reader.next(event) == config::EventReader::Read::event) {
      if (const auto* tick = std::get_if<config::Ticked>(&event)) {
        EXPECT_EQ(tick->now.time_since_epoch().count(), static_cast<std::int64_t>(found.ticks + found.lost));
        ++found.ticks;
      } else if (const auto* gap = std::get_if<config::Gap>(&event)) {
        ++found.gaps;
        found.lost += gap->lost;
      } else if (const auto* closed = std::get_if<config::Closed>(&event)) {
        ++found.closed;
        found.continued = closed->continued;
      } else if (const auto* before = std::get_if<config::Continued>(&event)) {
        EXPECT_EQ(config::image_digest(before->image), before->digest);
        found.image = before->image;
        found.ticks = std::strtoull(before->image.c_str(), nullptr, 10);
      }
    }
    return found;
  }

  std::string folder_, file_;
};

TEST_F(EventLogFile, HoldsEveryRecordInOrder) {
  constexpr std::int64_t n = 200'000;
  {
    EventLog log(file_, 1u << 30, "first\n");
    for (std::int64_t i = 0; i < n; ++i) {
      log.add(config::Ticked{Time(Nanos(i))});
      if (i % 1000 == 0) log.flush();
    }
    EXPECT_EQ(log.lost(), 0u);
  }
  const std::string text = text_of(file_);
  ASSERT_TRUE(text.starts_with("first\n"));
  const Found found = read(std::string_view(text).substr(6));
  EXPECT_EQ(found.ticks, static_cast<std::uint64_t>(n));
  EXPECT_EQ(found.closed, 1u);
  EXPECT_FALSE(found.continued);
}

// The image of these tests is the number of the next tick. Each file can be read by itself, and none is lost between.
TEST_F(EventLogFile, GoesOnInANewFileAtItsSize) {
  constexpr std::uint64_t most = 2u << 20;
  std::uint64_t ticks = 0;
  {
    EventLog log(file_, most, "first\n");
    for (int files = 0; files < 3;) {
      log.add(config::Ticked{Time(Nanos(static_cast<std::int64_t>(ticks++)))});
      if (!log.full()) continue;
      log.set_first_line("later\n");
      log.begin_file(std::to_string(ticks));
      ++files;
    }
    log.add(config::Ticked{Time(Nanos(static_cast<std::int64_t>(ticks++)))});
    EXPECT_EQ(log.lost(), 0u);
  }
  const std::string before = text_of(file_ + ".1"), last = text_of(file_);
  EXPECT_GE(before.size(), most);
  EXPECT_LE(before.size(), most + 2 * config::plain_event_bytes_max);
  ASSERT_TRUE(before.starts_with("later\n"));
  ASSERT_TRUE(last.starts_with("later\n"));
  const Found first = read(std::string_view(before).substr(6)), second = read(std::string_view(last).substr(6));
  EXPECT_TRUE(first.continued);
  EXPECT_FALSE(second.continued);
  EXPECT_EQ(second.image, std::to_string(first.ticks));
  EXPECT_EQ(second.ticks, ticks);
  EXPECT_FALSE(std::filesystem::exists(file_ + ".2"));
}

// A state that is larger than a file may be is not written again after every call.
TEST_F(EventLogFile, HoldsMoreCallsThanState) {
  {
    EventLog log(file_, 1u << 20, "\n");
    std::string image(3u << 20, 'x');
    std::uint64_t calls = 0, files = 0;
    for (; files < 2; ++calls) {
      log.add(config::Ticked{});
      if (log.full()) log.begin_file(image), ++files;
      if (calls % 10'000 == 0) log.flush();
    }
    EXPECT_EQ(log.lost(), 0u);
  }
  EXPECT_GE(std::filesystem::file_size(file_ + ".1"), 4 * (3u << 20));
}

TEST_F(EventLogFile, SaysThatItEndsWhereNoNewFileCanBeMade) {
  const std::string folder = folder_ + "/gone";
  std::filesystem::create_directory(folder);
  EventLog log(folder + "/events", 1u << 20, "\n");
  std::filesystem::remove_all(folder);
  while (!log.full()) log.add(config::Ticked{});
  log.begin_file("state");
  const auto by = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!log.failed() && std::chrono::steady_clock::now() < by) log.flush(), std::this_thread::yield();
  EXPECT_TRUE(log.failed());
  for (int n = 0; n < 100'000; ++n) log.add(config::Ticked{});
  EXPECT_EQ(log.lost(), 0u);
}

// A pipe that nobody reads keeps the writer behind until it is read.
TEST_F(EventLogFile, MarksWhatWasLostWhileTheWriterWasBehind) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const int reader = ends[0];
  std::string text;
  std::array<char, 65536> some{};
  const auto read_some = [&] {
    const ssize_t got = ::read(reader, some.data(), some.size());
    if (got > 0) text.append(some.data(), static_cast<std::size_t>(got));
    return got > 0;
  };
  std::thread rest;
  std::uint64_t lost = 0;
  {
    EventLog log(ends[1], "pipe", "\n");
    std::int64_t i = 0;
    while (log.lost() < 1000) log.add(config::Ticked{Time(Nanos(i++))});
    do {  // until one is kept again
      read_some();
      lost = log.lost();
      log.add(config::Ticked{Time(Nanos(i++))});
    } while (log.lost() != lost);
    rest = std::thread([&] {
      while (read_some()) {
      }
    });
  }  // writes what is left, then closes the pipe
  rest.join();
  ::close(reader);
  const Found found = read(std::string_view(text).substr(1));
  EXPECT_EQ(found.gaps, 1u);
  EXPECT_EQ(found.closed, 1u);
  EXPECT_EQ(found.lost, lost);
}

// rename() does nothing where both names are links to one file.
TEST_F(EventLogFile, ItsOlderPartMayBeALinkToIt) {
  std::ofstream(file_) << "old";
  std::filesystem::create_hard_link(file_, file_ + ".1");
  EventLog log(file_, 1u << 20, "new\n");
  log.flush();
  EXPECT_EQ(text_of(file_ + ".1"), "old");
}

TEST_F(EventLogFile, AFolderInItsWayIsSaidAtTheStart) {
  std::filesystem::create_directory(file_ + ".1");
  EXPECT_THROW(EventLog(file_, 1u << 20, "\n"), std::system_error);
  EXPECT_THROW(EventLog(folder_ + "/" + std::string(254, 'x'), 1u << 20, "\n"), std::system_error);
  EXPECT_FALSE(std::filesystem::exists(file_ + ".new"));
}

TEST_F(EventLogFile, IsWrittenWhereALinkLeads) {
  std::filesystem::create_directory(folder_ + "/disk");
  std::ofstream(folder_ + "/disk/real") << "old";
  std::filesystem::create_symlink("disk/real", file_);
  { EventLog log(file_, 1u << 20, "new\n"); }
  EXPECT_TRUE(std::filesystem::is_symlink(file_));
  EXPECT_TRUE(text_of(file_).starts_with("new\n"));
  EXPECT_EQ(text_of(folder_ + "/disk/real.1"), "old");
}

// The lock goes on from file to file: there is no moment for another process.
TEST_F(EventLogFile, StaysOneProcessesWhileItGoesOn) {
  EventLog log(file_, 1u << 20, "first\n");
  std::atomic<bool> done{false};
  std::size_t refused = 0, had = 0;
  std::thread other([&] {
    while (!done) {
      try {
        const EventLog mine(file_, 1u << 20, "other\n");
        ++had;
      } catch (const std::system_error&) {
        ++refused;
      }
    }
  });
  for (int files = 0; files < 50; ++files) {
    for (int n = 0; n < 1000; ++n) log.add(config::Ticked{});
    log.begin_file("state");
    log.flush();
  }
  const auto by = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!text_of(file_ + ".1").starts_with("first\n") && std::chrono::steady_clock::now() < by) {
  }
  done = true;
  other.join();
  EXPECT_FALSE(log.failed());
  EXPECT_EQ(had, 0u);
  EXPECT_GT(refused, 0u);
}

TEST_F(EventLogFile, IsOneProcessesAndAFile) {
  EventLog log(file_, 1u << 30, "mine\n");
  EXPECT_THROW(EventLog(file_, 1u << 30, "theirs\n"), std::system_error);
  EXPECT_FALSE(std::filesystem::exists(file_ + ".1"));
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(EventLog(pipe, 1u << 30, "\n"), std::system_error);
  EXPECT_THROW(EventLog(folder_, 1u << 30, "\n"), std::system_error);
}

TEST_F(EventLogFile, SaysThatItEndedWhenTheDiskIsFull) {
  EventLog log("/dev/full", 1u << 30, "first\n");
  log.flush();
  while (!log.failed()) std::this_thread::yield();
}

TEST_F(EventLogFile, MovesTheLogOfTheProcessBefore) {
  std::ofstream(file_) << "old";
  { EventLog log(file_, 1u << 30, "new\n"); }
  EXPECT_EQ(text_of(file_ + ".1"), "old");
  EXPECT_TRUE(text_of(file_).starts_with("new\n"));
  EXPECT_THROW(EventLog("/no/such/folder/log", 1u << 30, "\n"), std::system_error);
}

}  // namespace
}  // namespace headgate::gateway
