// What the binary says to its caller before any of its parts begins: subcommands, the file's option, lost output.
#include <gtest/gtest.h>

#include "support/child_process.hpp"

namespace headgate::support {
namespace {

struct Said {
  std::optional<int> code;
  std::string words;
};

Said run(const std::vector<std::string>& arguments, const std::string& stdout_path = {}) {
  ChildProcess process(arguments, stdout_path);
  const auto code = process.exit_code(20s * time_factor);
  return {code, process.output()};
}

std::size_t times(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(CommandLine, AnUnknownSubcommandIsNamedBesideThoseThatThereAre) {
  struct Row {
    std::vector<std::string> arguments;
    const char* words;
  };
  const Row rows[] = {
      {{"bogus"}, "headgate: \"bogus\" is no subcommand; there are: serve, check, schema, mock, load, simulate\n"},
      {{"serv", "--config", "x"},
       "headgate: \"serv\" is no subcommand; did you mean \"serve\"? There are: serve, check, schema, mock, load, "
       "simulate\n"},
      {{"--bogus"},
       "headgate: \"--bogus\" is no option, and a subcommand is required; there are: serve, check, schema, mock, load, "
       "simulate\n"},
      {{}, "headgate: a subcommand is required; there are: serve, check, schema, mock, load, simulate\n"}};
  for (const Row& row : rows) {
    const Said said = run(row.arguments);
    EXPECT_EQ(said.code, 2);
    EXPECT_EQ(said.words, row.words);
  }
}

TEST(CommandLine, OptionsThatDoNotGoTogetherAreNamed) {
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {{"load", "--workload", "w", "--rate", "3"}, "--workload: does not go with --rate\n"},
      {{"simulate", "x", "--workload", "w", "--unary"}, "--workload: does not go with --unary\n"},
      {{"simulate", "--replay", "log", "--seed", "3"},
       "--replay: makes the calls of its log; it takes --json and --expect, not --seed\n"},
      {{"simulate", "x", "--replay", "log"},
       "--replay: makes the calls of its log; it takes --json and --expect, not --config\n"}};
  for (const auto& [arguments, words] : rows) {
    const Said said = run(arguments);
    EXPECT_EQ(said.code, 2);
    EXPECT_TRUE(said.words.starts_with(words)) << said.words;
  }
}

TEST(CommandLine, ANumberOutOfRangeIsShownBesideTheRange) {
  struct Row {
    std::vector<std::string> arguments;
    const char* words;
  };
  const Row rows[] = {
      {{"load", "--limit", "-1"}, "--limit: is \"-1\", must be a whole number 0..18446744073709551615\n"},
      {{"simulate", "x", "--seed", "-1"}, "--seed: is \"-1\", must be a whole number 0..18446744073709551615\n"},
      {{"simulate", "x", "--seeds", "0"}, "--seeds: is \"0\", must be a whole number 1..1000\n"},
      {{"load", "--prompt-tokens", "4294967296"},
       "--prompt-tokens: is \"4294967296\", must be a whole number 1..1000000\n"},
      {{"mock", "--port", "70000"}, "--port: is \"70000\", must be a whole number 0..65535\n"}};
  for (const Row& row : rows) {
    const Said said = run(row.arguments);
    EXPECT_EQ(said.code, 2);
    EXPECT_TRUE(said.words.starts_with(row.words)) << said.words;
  }
}

TEST(CommandLine, TheFileIsAnOptionOrStandsAlone) {
  const std::string good = HEADGATE_SOURCE_DIR "/config/examples/demo.jsonc";
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"check", good}, {"check", "--config", good}}) {
    const Said said = run(arguments);
    EXPECT_EQ(said.code, 0);
    EXPECT_EQ(said.words, good + ": ok: 2 pools, 4 backends, 2 routes\n");
  }
  for (const std::string name : {"serve", "check"}) {
    const Said help = run({name, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_EQ(times(help.words, "configuration file;"), 1u) << help.words;
    EXPECT_NE(help.words.find("--config FILE "), std::string::npos) << help.words;
    EXPECT_EQ(help.words.find("REQUIRED"), std::string::npos) << help.words;
    const Said none = run({name});
    EXPECT_EQ(none.code, 2);
    EXPECT_NE(none.words.find("A configuration file is required: headgate " + name + " FILE\n"), std::string::npos)
        << none.words;
  }
}

TEST(CommandLine, OutputThatIsLostIsAFailure) {
  const std::string good = HEADGATE_SOURCE_DIR "/config/examples/demo.jsonc";
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"schema"},
                                                    {"schema", "--reference"},
                                                    {"--help"},
                                                    {"--version"},
                                                    {"serve", "--help"},
                                                    {"check", good},
                                                    {"check", "--json", good}}) {
    const Said said = run(arguments, "/dev/full");
    EXPECT_EQ(said.code, 1) << arguments.front();
    EXPECT_EQ(said.words, "headgate: standard output cannot be written\n");
  }
}

}  // namespace
}  // namespace headgate::support
