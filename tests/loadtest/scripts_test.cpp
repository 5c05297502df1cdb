// Arguments of `run` and of the scripts here: a wrong one is named in one line with exit code 2 before anything begins.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace headgate::loadtest {
namespace {

struct Said {
  int code = -1;
  std::string words;
};

// In the repository's root. ARGUMENTS_ONLY ends a script that took its arguments; no binary is where it is looked for.
Said shell(const std::string& command) {
  Said said;
  std::FILE* const out = popen(("cd '" HEADGATE_SOURCE_DIR "' && ARGUMENTS_ONLY=1 " + command + " 2>&1").c_str(), "r");
  if (out == nullptr) return said;
  std::array<char, 4096> block;
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), out)) said.words.append(block.data(), got);
  const int status = pclose(out);
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return said;
}

struct Wrong {
  const char *command, *named;
};

void expect_named(const Wrong& row) {
  const Said said = shell(row.command);
  EXPECT_EQ(said.code, 2) << row.command << ": " << said.words;
  EXPECT_NE(said.words.find(row.named), std::string::npos) << row.command << ": " << said.words;
  EXPECT_EQ(std::ranges::count(said.words, '\n'), 1) << row.command << ": " << said.words;
}

TEST(Scripts, NameAWrongArgument) {
  for (const Wrong& row : {Wrong{"loadtest/demo.sh /no/headgate --bogus", "\"--bogus\""},
                           {"loadtest/demo.sh /no/headgate --keep keep", "\"keep\""},
                           {"loadtest/main_job.sh /no/headgate --bogus", "\"--bogus\""},
                           {"loadtest/main_job.sh /no/headgate README.md x y", "\"y\""},
                           {"loadtest/main_job.sh /no/headgate /no/trace", "/no/trace cannot be read"},
                           {"loadtest/wrk.sh /no/headgate --bogus", "\"--bogus\""},
                           {"loadtest/wrk.sh /no/headgate -d", "-d needs a value"},
                           {"loadtest/wrk.sh /no/headgate -d abc", "-d is \"abc\""},
                           {"loadtest/wrk.sh /no/headgate -d 0s", "-d is \"0s\""},
                           {"loadtest/wrk.sh /no/headgate -d 1.5", "-d is \"1.5\""},
                           {"loadtest/wrk.sh /no/headgate -c 0", "-c is \"0\""},
                           {"loadtest/wrk.sh /no/headgate -c -1", "-c is \"-1\""},
                           {"loadtest/wrk.sh /no/headgate unary_1k bogus", "\"bogus\""},
                           {"loadtest/refusals.sh /no -r 1 x", "\"x\" is one argument too many"},
                           {"loadtest/agreement.sh /no -x 3", "-d SECONDS, -p PERCENT may be given"},
                           {"loadtest/mock_streams.sh /no -e 3", "-e is \"3\""},
                           {"loadtest/replay.sh /no -e 123456789", "-e is \"123456789\""},
                           {"loadtest/peers.sh /no -x", "\"-x\""},
                           {"loadtest/decide.sh /no -k 0", "-k is \"0\""},
                           {"loadtest/decide.sh /no bogus", "\"bogus\" is no table"},
                           {"loadtest/peers.sh /no -d 10ss", "-d is \"10ss\""},
                           {"loadtest/peers.sh /no -r 9999999999999999999999", "-r is \"9999999999999999999999\""},
                           {"loadtest/peers.sh /no -p 'headgate bogus'", "\"bogus\""},
                           {"loadtest/peers.sh /no -p ''", "-p is empty"},
                           {"loadtest/peers.sh /no unary_1k", "\"unary_1k\""},
                           {"loadtest/peers.sh /no unary_1k:0", "\"unary_1k:0\""}}) {
    expect_named(row);
  }
}

TEST(Scripts, TakeSecondsWithAndWithoutTheirUnitAndOptionsAnywhere) {
  for (const char* command :
       {"loadtest/demo.sh /no/headgate", "loadtest/demo.sh /no/headgate --keep", "loadtest/main_job.sh /no/headgate",
        "loadtest/main_job.sh /no/headgate README.md /no/summary", "loadtest/wrk.sh /no/headgate",
        "loadtest/wrk.sh /no/headgate -d 10", "loadtest/wrk.sh /no/headgate -d 10s",
        "loadtest/wrk.sh /no/headgate -d10s -c8 mixed", "loadtest/wrk.sh /no/headgate mixed -d 10s -c 8",
        "loadtest/peers.sh /no -d 10s -r 1", "loadtest/peers.sh /no -d 10 -p 'headgate floor' paced:256 unary_16k:1"}) {
    const Said said = shell(command);
    EXPECT_EQ(said.code, 0) << command << ": " << said.words;
    EXPECT_EQ(said.words, "") << command;
  }
}

TEST(Run, NamesAWrongArgument) {
  for (const Wrong& row : {Wrong{"./run bogus", "\"bogus\""},
                           {"./run demo --bogus", "\"--bogus\""},
                           {"./run main-job --bogus", "\"--bogus\""},
                           {"./run wrk --bogus", "\"--bogus\""},
                           {"./run bench --bogus", "\"--bogus\""},
                           {"./run peers --bogus", "\"--bogus\""},
                           {"./run build --bogus", "\"--bogus\""},
                           {"./run build bogus", "\"bogus\""},
                           {"./run test --bogus", "\"--bogus\""},
                           {"./run test one two", "\"two\""},
                           {"./run format --bogus", "\"--bogus\""}}) {
    expect_named(row);
  }
}

}  // namespace
}  // namespace headgate::loadtest
