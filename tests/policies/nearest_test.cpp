#include "policies/base/nearest.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace headgate {
namespace {

TEST(Nearest, CountsInsertDeleteReplaceAndSwapButNotCase) {
  struct Row {
    const char *a, *b;
    std::size_t edits;
  };
  const Row rows[] = {{"", "", 0},          {"a", "", 1},          {"", "abc", 3},         {"slots", "slots", 0},
                      {"slot", "slots", 1}, {"slost", "slots", 1}, {"slits", "slots", 1},  {"SLOTS", "slots", 0},
                      {"abc", "xyz", 3},    {"ca", "abc", 3},      {"wieght", "weight", 1}};
  for (const Row& row : rows) {
    EXPECT_EQ(edit_distance(row.a, row.b), row.edits) << row.a << " " << row.b;
    EXPECT_EQ(edit_distance(row.b, row.a), row.edits) << row.b << " " << row.a;
  }
}

TEST(Nearest, FindsTheNameThatWasMeant) {
  const std::vector<std::string> known{"slots", "weight", "url", "name", "allow_anonymous", "small", "large"};
  struct Row {
    const char *written, *meant;
  };
  const Row rows[] = {{"slot", "slots"},  {"SLOTS", "slots"}, {"wieght", "weight"},
                      {"uri", "url"},     {"smal", "small"},  {"allow_anonimous", "allow_anonymous"},
                      {"lagre", "large"}, {"Url", "url"},     {"allowAnonymous", "allow_anonymous"}};
  for (const Row& row : rows) EXPECT_EQ(nearest(row.written, known), row.meant) << row.written;
}

TEST(Nearest, NamesNothingWhenNothingIsNear) {
  const std::vector<std::string> known{"slots", "url", "a"};
  for (const char* written : {"timeout", "xyz", "", "b", "completely_different"}) {
    EXPECT_EQ(nearest(written, known), std::nullopt) << written;
  }
  EXPECT_EQ(nearest(std::string(10'000, 'x'), known), std::nullopt);
  EXPECT_EQ(nearest("slots", {}), std::nullopt);
}

TEST(Nearest, TheFirstOfTwoEquallyNearIsTaken) {
  const std::vector<std::string> known{"pool_a", "pool_b"};
  EXPECT_EQ(nearest("pool_c", known), "pool_a");
}

TEST(Nearest, ListsWhatIsKnownWhenNothingIsNear) {
  EXPECT_EQ(suggestion("slto", std::vector<std::string>{"slot"}), "; did you mean \"slot\"?");
  EXPECT_EQ(suggestion("zzz", std::vector<std::string>{"one", "two"}), "; known here: one, two");
  EXPECT_EQ(suggestion("zzz", {}), "");
  std::vector<std::string> many;
  for (int i = 10; i < 30; ++i) many.push_back("entry" + std::to_string(i));
  const std::string text = suggestion("zzz", many);
  EXPECT_NE(text.find("entry21 and 8 more"), std::string::npos) << text;
  EXPECT_EQ(text.find("entry22"), std::string::npos) << text;
}

}  // namespace
}  // namespace headgate
