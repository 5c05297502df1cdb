// A run of the real binary with any subcommand, for what GatewayProcess does not cover: processes that are to fail at
// once, and mock model servers that are to be killed. Ended with SIGKILL by the destructor if it still runs, and by the
// kernel if the test dies.
//
//   ChildProcess serve({"serve", "--config", path});
//   EXPECT_EQ(serve.exit_code(10s), 2);
//   MockProcess mock({"--profile", "demo", "--slots", "16"});   // on a free port, once it listens
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/waiting.hpp"

namespace headgate::support {

class ChildProcess {
 public:
  // stdout_path: where standard output goes instead, such as /dev/full. program: another than headgate.
  explicit ChildProcess(const std::vector<std::string>& arguments, const std::string& stdout_path = {},
                        const std::string& program = product());
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void signal(int number);
  // The exit code (128 + signal number if killed by one), or nothing if it still runs after `within`.
  std::optional<int> exit_code(Nanos within);
  std::string output() const;  // stdout and stderr so far

 private:
  std::string output_path_;
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

// `headgate mock` with one replica. Throws std::runtime_error with its output if it does not listen in time.
class MockProcess {
 public:
  explicit MockProcess(std::vector<std::string> options);
  std::uint16_t port() const { return port_; }
  ChildProcess& process() { return process_; }

 private:
  ChildProcess process_;
  std::uint16_t port_ = 0;
};

// A file with that text, removed with the object.
class TextFile {
 public:
  explicit TextFile(std::string_view text);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace headgate::support
