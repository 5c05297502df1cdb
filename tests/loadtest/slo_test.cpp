#include "loadtest/slo.hpp"

#include <gtest/gtest.h>

#include "loadtest/record.hpp"

namespace headgate::loadtest {
namespace {

using namespace std::chrono_literals;

TEST(Slo, ReadsItsLimits) {
  std::string problem;
  const auto slo = parse_slo("ttft=1s,tpot=50ms,e2e=1.5s", problem);
  ASSERT_TRUE(slo) << problem;
  EXPECT_EQ(slo->ttft, Nanos{1s});
  EXPECT_EQ(slo->tpot, Nanos{50ms});
  EXPECT_EQ(slo->e2e, Nanos{1500ms});
  EXPECT_FALSE(slo->gap);
  EXPECT_TRUE(parse_slo("", problem));
}

TEST(Slo, SaysWhatIsWrong) {
  for (const auto& [text, part] : {std::pair{"ttf=1s", "\"ttf=1s\""},
                                   {"ttft", "\"ttft\""},
                                   {"ttft=1", "ttft is \"1\""},
                                   {"tpot=fast", "tpot is \"fast\""},
                                   {"e2e=1s,e2e=2s", "e2e is given twice"}}) {
    std::string problem;
    EXPECT_FALSE(parse_slo(text, problem)) << text;
    EXPECT_NE(problem.find(part), problem.npos) << problem;
  }
}

TEST(Goodput, CountsOnlyWhatIsOkAndWithinEveryLimit) {
  std::string problem;
  const Slo slo = *parse_slo("ttft=1s,tpot=50ms,gap=200ms,e2e=5s", problem);
  Record good;
  good.outcome = Outcome::ok;
  good.first = 1s;
  good.last = 1s + 490ms;
  good.content_events = 11;
  good.gap_max = 200ms;
  good.ended = 2s;
  EXPECT_TRUE(is_good(good, slo));
  Record late = good, slow = good, gap = good, long_one = good, wrong = good;
  late.first = 1s + 1ns;
  slow.last = 1s + 511ms;
  gap.gap_max = 201ms;
  long_one.ended = 5001ms;
  wrong.outcome = Outcome::wrong_count;
  for (const Record& miss : {late, slow, gap, long_one, wrong}) EXPECT_FALSE(is_good(miss, slo));
}

TEST(Goodput, JudgesUnaryAnswersByTheirWholeTimeOnly) {
  std::string problem;
  Record unary;
  unary.stream = false;
  unary.outcome = Outcome::ok;
  unary.ended = 3s;
  EXPECT_TRUE(is_good(unary, *parse_slo("ttft=1ms,tpot=1ms", problem)));
  EXPECT_FALSE(is_good(unary, *parse_slo("e2e=2s", problem)));
}

}  // namespace
}  // namespace headgate::loadtest
