#include "gateway/access_log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "support/waiting.hpp"

namespace headgate::gateway {
namespace {

using namespace std::chrono_literals;
using support::eventually;

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "headgate-log-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category());
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t lines_in(const std::string& file) {
  const std::string text = text_of(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

AccessEntry full_entry() {
  AccessEntry entry;
  entry.at = std::chrono::sys_days(std::chrono::year(2026) / 3 / 4) + 5h + 6min + 7s + 89ms;
  entry.request_id = "req-1";
  entry.client = "2001:db8::1";
  entry.key_name = "team";
  entry.method = "POST";
  entry.path = "/v1/chat/completions";
  entry.route = "big";
  entry.stream = true;
  entry.status = 200;
  entry.bytes = 4321;
  entry.input_tokens = 10;
  entry.output_tokens = 20;
  entry.cached_tokens = 3;
  entry.queued = 1500us;
  entry.ttft = 75ms + 250us;
  entry.total = 1234567us;
  entry.backend = "pool/a";
  entry.attempts = 2;
  return entry;
}

std::string line_of(const AccessEntry& entry) {
  std::string out;
  append_access_line(out, entry);
  return out;
}

TEST(AccessLine, HoldsEveryFieldInAFixedOrder) {
  EXPECT_EQ(line_of(full_entry()),
            "{\"time\":\"2026-03-04T05:06:07.089Z\",\"id\":\"req-1\",\"client\":\"2001:db8::1\",\"key\":\"team\","
            "\"route\":\"big\",\"status\":200,"
            "\"in\":10,\"out\":20,\"estimated\":false,\"cached\":3,\"queue_ms\":1.500,\"ttft_ms\":75.250,"
            "\"total_ms\":1234.567,\"backend\":\"pool/a\",\"attempts\":2,\"outcome\":\"ok\",\"cause\":\"\","
            "\"method\":\"POST\",\"path\":\"/v1/chat/completions\",\"stream\":true,\"bytes\":4321}\n");
}

TEST(AccessLine, SaysNullWhereNoContentCame) {
  AccessEntry entry;
  entry.status = 503;
  entry.outcome = Ending::refused;
  entry.cause = "queue_full";
  EXPECT_EQ(line_of(entry),
            "{\"time\":\"1970-01-01T00:00:00.000Z\",\"id\":\"\",\"client\":\"\",\"key\":\"\",\"route\":\"\",\"status\":"
            "503,\"in\":0,"
            "\"out\":0,\"estimated\":false,\"cached\":0,\"queue_ms\":0.000,\"ttft_ms\":null,\"total_ms\":0.000,"
            "\"backend\":\"\",\"attempts\":0,\"outcome\":\"refused\",\"cause\":\"queue_full\",\"method\":\"\","
            "\"path\":\"\",\"stream\":false,\"bytes\":0}\n");
}

TEST(AccessLine, IsOneLineOfJsonWhateverTheCallerSent) {
  AccessEntry entry = full_entry();
  entry.route = "a\"b\n\xff";
  entry.path = "/x\r\n{\"y\\";
  const std::string line = line_of(entry);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["route"], "a\"b\n\xEF\xBF\xBD");
  EXPECT_EQ(json["path"], "/x\r\n{\"y\\");
}

TEST(AccessLine, NeverShowsAQueryAndCutsALongPath) {
  AccessEntry entry = full_entry();
  entry.path = "/v1/models?api_key=sk-secret";
  EXPECT_EQ(nlohmann::json::parse(line_of(entry))["path"], "/v1/models");
  const std::string endless(5000, 'a');
  entry.path = endless;
  EXPECT_EQ(nlohmann::json::parse(line_of(entry))["path"].get<std::string>().size(), 256u);
}

TEST(AccessLog, WritesEachLineOnceInOrder) {
  const Folder folder;
  const std::string file = folder.file("log");
  constexpr std::uint32_t count = 5000;
  {
    AccessLog log(file);
    AccessLines lines(log);
    for (std::uint32_t i = 0; i < count; ++i) {
      AccessEntry entry = full_entry();
      entry.input_tokens = i;
      lines.append(entry);
    }
    EXPECT_TRUE(eventually(5s, [&] { return lines_in(file) > count / 2; })) << "full buffers go without a flush";
    lines.flush();
    EXPECT_TRUE(eventually(5s, [&] { return lines_in(file) == count; }));
    EXPECT_EQ(log.dropped(), 0u);
  }
  std::ifstream in(file);
  std::string line;
  for (std::uint32_t i = 0; i < count; ++i) {
    ASSERT_TRUE(std::getline(in, line));
    ASSERT_EQ(nlohmann::json::parse(line)["in"], i);
  }
}

TEST(AccessLog, WritesWhatIsLeftWhenItEnds) {
  const Folder folder;
  const std::string file = folder.file("log");
  {
    AccessLog log(file);
    AccessLines lines(log);
    lines.append(full_entry());
  }
  EXPECT_EQ(lines_in(file), 1u);
}

TEST(AccessLog, WritesNothingWhenOffUntilItIsReopened) {
  const Folder folder;
  const std::string file = folder.file("log");
  AccessLog log("off");
  AccessLines lines(log);
  lines.append(full_entry());
  lines.flush();
  EXPECT_TRUE(log.off());
  EXPECT_EQ(log.reopen(file), "");
  lines.append(full_entry());
  lines.flush();
  EXPECT_TRUE(eventually(5s, [&] { return lines_in(file) == 1; }));
}

TEST(AccessLog, FollowsARotatedFileAfterReopen) {
  const Folder folder;
  const std::string file = folder.file("log");
  AccessLog log(file);
  AccessLines lines(log);
  lines.append(full_entry());
  lines.flush();
  ASSERT_TRUE(eventually(5s, [&] { return lines_in(file) == 1; }));
  std::filesystem::rename(file, folder.file("log.1"));
  EXPECT_EQ(log.reopen(file), "");
  lines.append(full_entry());
  lines.flush();
  EXPECT_TRUE(eventually(5s, [&] { return lines_in(file) == 1; }));
  EXPECT_EQ(lines_in(folder.file("log.1")), 1u);
}

TEST(AccessLog, KeepsTheOldFileWhenTheNewOneCannotBeOpened) {
  const Folder folder;
  const std::string file = folder.file("log");
  AccessLog log(file);
  AccessLines lines(log);
  const std::string problem = log.reopen(folder.file("no/such/folder"));
  EXPECT_NE(problem.find("no/such/folder"), std::string::npos) << problem;
  lines.append(full_entry());
  lines.flush();
  EXPECT_TRUE(eventually(5s, [&] { return lines_in(file) == 1; }));
}

TEST(AccessLog, RefusesAtTheStartAFileItCannotOpen) {
  EXPECT_THROW(AccessLog("/no/such/folder/log"), std::system_error);
}

// A pipe that nobody reads stands for a stuck disk: the shard must not wait, memory must not grow, the loss is counted.
TEST(AccessLog, DropsAndCountsWhenTheWriterIsBehindAndNeverBlocks) {
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  std::uint64_t appended = 0, bytes_appended = 0;
  const auto began = support::now();
  {
    AccessLog log(pipe);
    AccessLines lines(log);
    const std::uint64_t line_bytes = line_of(full_entry()).size();
    while (bytes_appended < 3 * AccessLog::backlog_max) {
      lines.append(full_entry());
      ++appended;
      bytes_appended += line_bytes;
    }
    lines.flush();
    EXPECT_GT(log.dropped(), appended / 2);
    EXPECT_LT(log.dropped(), appended);
  }
  EXPECT_LT(support::now() - began, support::scaled(8s)) << "ends although the pipe stays full";
  ::close(reader);
}

TEST(AccessLog, SurvivesAClosedPipe) {
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  AccessLog log(pipe);
  ::close(reader);
  AccessLines lines(log);
  lines.append(full_entry());
  lines.flush();
  EXPECT_TRUE(eventually(5s, [&] { return log.dropped() == 1; }));
}

}  // namespace
}  // namespace headgate::gateway
