#include "gateway/json_text.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace headgate::gateway {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

TEST(JsonText, EscapesWhatJsonForbidsAndLeavesTheRest) {
  EXPECT_EQ(quoted("plain text /~"), R"("plain text /~")");
  EXPECT_EQ(quoted("a\"b\\c\n\r\t\x01\x7f"), "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u007f\"");
  EXPECT_EQ(quoted(std::string_view("\0x", 2)), R"("\u0000x")");
  EXPECT_EQ(quoted(""), R"("")");
}

TEST(JsonText, KeepsValidUtf8AndReplacesEachByteThatIsNot) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(quoted("é€😀"), "\"é€😀\"");
  EXPECT_EQ(quoted("\xff"), "\"" + bad + "\"");
  EXPECT_EQ(quoted("\xc3"), "\"" + bad + "\"");                      // cut short
  EXPECT_EQ(quoted("\xc0\xaf"), "\"" + bad + bad + "\"");            // overlong
  EXPECT_EQ(quoted("\xed\xa0\x80"), "\"" + bad + bad + bad + "\"");  // surrogate
  EXPECT_EQ(quoted("\xf4\x90\x80\x80"), "\"" + bad + bad + bad + bad + "\"");
  EXPECT_EQ(quoted("\xe2\x82x"), "\"" + bad + bad + "x\"");
}

TEST(JsonText, WritesNumbersWithoutLocaleOrExponentOfThousandths) {
  std::string out;
  append_thousandths(out, 1234567);
  append_thousandths(out += ' ', 5);
  append_thousandths(out += ' ', 0);
  append_thousandths(out += ' ', -1050);
  append_number(out += ' ', std::numeric_limits<std::uint64_t>::max());
  append_double(out += ' ', 9.5);
  append_double(out += ' ', std::numeric_limits<double>::infinity());
  EXPECT_EQ(out, "1234.567 0.005 0.000 -1.050 18446744073709551615 9.5 0");
}

}  // namespace
}  // namespace headgate::gateway
