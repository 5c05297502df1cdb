#include "backends/mock/profile_file.hpp"

#include <gtest/gtest.h>

namespace headgate::mock {
namespace {

using namespace std::chrono_literals;

TEST(MockProfileFile, TakesWhatItSaysAndTheRestFromItsBase) {
  std::string problem;
  const auto profile = read_profile(R"({"base": "llama-3.1-8b-h100", // a comment
    "step_fixed_us": 9000, "step_per_context_token_us": 0.08, "slots": 128})",
                                    problem);
  ASSERT_TRUE(profile) << problem;
  const engine::Profile& base = *engine::find_profile("llama-3.1-8b-h100");
  EXPECT_EQ(profile->step_fixed, 9ms);
  EXPECT_EQ(profile->step_per_context_token, 80ns);
  EXPECT_EQ(profile->slots, 128u);
  EXPECT_EQ(profile->prefill_per_token, base.prefill_per_token);
  EXPECT_EQ(profile->blocks, base.blocks);
}

TEST(MockProfileFile, NamesTheLineOrTheFieldThatIsWrong) {
  const std::pair<const char*, const char*> rows[] = {
      {"{\n\"slots\": 3,\n}", "line 3: this is no JSON"},
      {"[]", "a JSON object is wanted"},
      {R"({"base":"demo","overhead_us":1e400})", "a number is out of range"},
      {"{}", "step_fixed_us is missing or under 0.001; a step takes some time"},
      {R"({"base":"demos"})", R"(base is "demos", no profile; did you mean "demo"?)"},
      {R"({"base":"instant"})", R"(base is "instant", which takes no time)"},
      {R"({"base":"demo","slot":3})", R"(unknown field "slot"; did you mean "slots"?)"},
      {R"({"base":"demo","slots":0})", "slots must be a whole number from 1 to 65536, not 0"},
      {R"({"base":"demo","overhead_us":-1})",
       "overhead_us must be a number of microseconds from 0 to 60000000, not -1"},
  };
  for (const auto& [text, wanted] : rows) {
    std::string problem;
    EXPECT_FALSE(read_profile(text, problem)) << text;
    EXPECT_EQ(problem, wanted);
  }
}

TEST(MockProfileFile, ANameThatIsNeitherProfileNorFileIsTold) {
  std::string problem;
  EXPECT_FALSE(load_profile("demos", problem));
  EXPECT_EQ(
      problem,
      R"(profile "demos" is unknown, and as a file it cannot be opened: No such file or directory; did you mean "demo"?)");
  EXPECT_EQ(load_profile("demo", problem)->name, "demo");
}

}  // namespace
}  // namespace headgate::mock
