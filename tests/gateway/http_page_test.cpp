// HTTP.md has every answer that the gateway makes, and every metric it names is one.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "gateway/metric_list.hpp"
#include "gateway/refusal.hpp"

namespace headgate::gateway {
namespace {

std::string page() {
  std::ifstream file(HEADGATE_SOURCE_DIR "/HTTP.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(HttpPage, HasEveryRefusalUnderItsStatus) {
  const std::string text = page();
  std::set<std::string> rows;
  for (std::size_t i = 0; i < refusals; ++i) {
    const RefusalRow& row = row_of(static_cast<Refusal>(i));
    if (row.refusal == Refusal::upstream_overloaded) continue;  // in the row of upstream_failed
    const std::string begin = "\n| " + std::to_string(row.status) + " | `" + std::string(row.code) + "` | ";
    const std::size_t at = text.find(begin);
    ASSERT_NE(at, std::string::npos) << begin;
    rows.insert(begin);
    if (row.refusal == Refusal::upstream_status || row.should_retry == ShouldRetry::unsaid) continue;
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    EXPECT_TRUE(line.ends_with(row.should_retry == ShouldRetry::no ? " | no |" : " | once |") ||
                row.code == "upstream_failed")
        << line;
  }
  std::set<std::string> found;
  const std::regex row(R"(\n\| \d{3} \| `\w+` \| )");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), row); it != std::sregex_iterator(); ++it)
    found.insert(it->str());
  EXPECT_EQ(found, rows);
}

TEST(HttpPage, NamesMetricsThatThereAre) {
  const std::string text = page();
  std::set<std::string> known;
  for (const Family& family : metric_list()) known.emplace(family.name);
  const std::regex name(R"(headgate_\w+)");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), name); it != std::sregex_iterator(); ++it)
    EXPECT_TRUE(known.contains(it->str())) << it->str();
}

}  // namespace
}  // namespace headgate::gateway
