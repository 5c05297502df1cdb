// House rules that the compiler does not check. A broken one is printed as "file:line: what is wrong".
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Source {
  std::string path;  // from the repository's root
  std::vector<std::string> lines;
};

std::vector<Source> sources_in(const std::vector<std::string>& folders) {
  std::vector<Source> found;
  const fs::path root = HEADGATE_SOURCE_DIR;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cpp" && extension != ".hpp") continue;
      Source source{fs::relative(entry.path(), root).string(), {}};
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) source.lines.push_back(line);
      found.push_back(std::move(source));
    }
  }
  return found;
}

std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

// Every line that matches is a fault.
void ban(const std::vector<Source>& sources, const std::regex& banned, const std::string& instead) {
  for (const Source& source : sources) {
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      if (std::regex_search(without_comment(source.lines[i]), banned)) {
        ADD_FAILURE() << source.path << ":" << i + 1 << ": " << instead << ": " << source.lines[i];
      }
    }
  }
}

const std::vector<std::string> all{"policies", "backends", "config", "gateway", "loadtest", "tests"};
const std::vector<std::string> product{"policies", "backends", "config", "gateway", "loadtest"};
const std::vector<std::string> pure{"policies", "backends/engine"};

// What stands before a co_await on its line, leading `if (..)`, `while (..)`, `else` taken off: nothing, co_return, or
// a name that takes the result.
bool at_the_front(std::string before) {
  static const std::regex leading(R"(^\s*(\}\s*)?(else\s*)?((if|while|for)\s*\(.*\))?\s*)");
  static const std::regex allowed(
      R"(^(co_return\s+|(const\s+)?(auto|[\w:<>]+)?\s*(\[[\w, ]+\]|[\w.>\-\[\]]+)?\s*=\s*|\(void\)\s*)?$)");
  before = std::regex_replace(before, leading, "", std::regex_constants::format_first_only);
  return std::regex_match(before, allowed);
}

}  // namespace

TEST(Tidy, PoliciesAndEngineIncludeTheStandardLibraryOnly) {
  ban(sources_in({"policies"}), std::regex(R"re(#include ("(?!policies/)|<[^>]*[/.]))re"),
      "policies may include the standard library only");
  ban(sources_in({"backends/engine"}), std::regex(R"re(#include ("(?!policies/base/|backends/engine/)|<[^>]*[/.]))re"),
      "the engine may include the standard library and policies/base only");
}

TEST(Tidy, NobodyLeavesItsLayerByPath) {
  ban(sources_in(all), std::regex(R"re(#include "\.\.?/)re"), "include from the repository's root");
}

TEST(Tidy, DecisionsReadNoClockAndDrawNoRandomness) {
  ban(sources_in(pure), std::regex(R"((_clock::now|\btime\(|random_device|mt19937|\brand\(|_distribution|getenv))"),
      "now and randomness are arguments");
}

TEST(Tidy, OneCoAwaitPerStatementAtItsFront) {
  for (const Source& source : sources_in(product)) {
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      const std::string line = without_comment(source.lines[i]);
      const std::size_t at = line.find("co_await");
      if (at == std::string::npos) continue;
      const std::string behind = line.substr(at + 8);
      EXPECT_TRUE(at_the_front(line.substr(0, at)))
          << source.path << ":" << i + 1 << ": co_await must stand at the front: " << line;
      EXPECT_EQ(behind.find("co_await"), std::string::npos)
          << source.path << ":" << i + 1 << ": one co_await per statement: " << line;
      EXPECT_EQ(behind.find('{'), std::string::npos)
          << source.path << ":" << i + 1 << ": name the object or lambda first: " << line;
    }
  }
}

TEST(Tidy, TheCoAwaitRuleKnowsGoodFromBad) {
  for (const char* good : {"  ", "  const bool ok = ", "  auto [failed, n] = ", "  co_return ",
                           "  while (!link.ended()) ", "  if (more) answer = ", "  } else if (late) co_return "}) {
    EXPECT_TRUE(at_the_front(good)) << good;
  }
  for (const char* bad :
       {"  if (", "  while (!", "  return x ? ", "  use(", "  v.push_back(", "  const bool ok = !", "  total += "}) {
    EXPECT_FALSE(at_the_front(bad)) << bad;
  }
}

TEST(Tidy, FilesStayReadable) {
  for (const Source& source : sources_in(product)) {
    EXPECT_LE(source.lines.size(), 400u) << source.path << ": over 400 lines: is it one idea?";
  }
  for (const Source& source : sources_in({"tests"})) {
    EXPECT_LE(source.lines.size(), 650u) << source.path << ": over 650 lines";
  }
}

TEST(Tidy, NamesSaySomething) {
  static const std::regex empty_name(R"((^|/)[a-z_]*(util|utils|helper|helpers|manager|common|misc)\.)");
  for (const Source& source : sources_in(all)) {
    EXPECT_FALSE(std::regex_search(source.path, empty_name)) << source.path << ": name it for what it is";
  }
}

TEST(Tidy, TestsWaitForEvents) {
  ban(sources_in({"tests"}), std::regex(R"(\b(usleep|nanosleep)\()"), "wait for the event instead");
}
