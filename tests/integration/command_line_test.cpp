// What the binary says to its caller before any of its parts begins: which subcommands there are.
#include <gtest/gtest.h>

#include "support/child_process.hpp"

namespace headgate::support {
namespace {

struct Said {
  std::optional<int> code;
  std::string words;
};

Said run(const std::vector<std::string>& arguments) {
  ChildProcess process(arguments);
  const auto code = process.exit_code(20s * time_factor);
  return {code, process.output()};
}

TEST(CommandLine, AnUnknownSubcommandIsNamedBesideThoseThatThereAre) {
  struct Row {
    std::vector<std::string> arguments;
    const char* words;
  };
  const Row rows[] = {
      {{"bogus"}, "headgate: \"bogus\" is no subcommand; there are: serve, check, schema, mock, load\n"},
      {{"serv", "--config", "x"},
       "headgate: \"serv\" is no subcommand; did you mean \"serve\"? There are: serve, check, schema, mock, load\n"},
      {{"--bogus"}, "headgate: \"--bogus\" is no subcommand; there are: serve, check, schema, mock, load\n"},
      {{}, "headgate: a subcommand is required; there are: serve, check, schema, mock, load\n"}};
  for (const Row& row : rows) {
    const Said said = run(row.arguments);
    EXPECT_EQ(said.code, 2);
    EXPECT_EQ(said.words, row.words);
  }
}

}  // namespace
}  // namespace headgate::support
