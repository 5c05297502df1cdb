#include "support/child_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace headgate::support {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

std::string make_file() {
  std::string path = (std::filesystem::temp_directory_path() / "headgate-test-XXXXXX").string();
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) fail("mkostemp");
  ::close(file);
  return path;
}

std::vector<std::string> mock_arguments(std::vector<std::string> options) {
  options.insert(options.begin(), {"mock", "--port", "0"});
  return options;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, const std::string& stdout_path,
                           const std::string& program)
    : output_path_(make_file()) {
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int out = ::open(output_path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (out < 0) fail("open");
  const int other = stdout_path.empty() ? out : ::open(stdout_path.c_str(), O_WRONLY | O_CLOEXEC);
  if (other < 0) fail("open");
  pid_ = ::fork();
  if (pid_ == 0) {  // only calls that are safe after fork in a process with threads
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(other, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execve(words[0], words.data(), environ);
    ::_exit(126);
  }
  if (other != out) ::close(other);
  ::close(out);
  if (pid_ < 0) fail("fork");
}

ChildProcess::~ChildProcess() {
  signal(SIGKILL);
  exit_code(10s);
  std::error_code ignored;
  std::filesystem::remove(output_path_, ignored);
}

void ChildProcess::signal(int number) {
  if (pid_ > 0 && !exit_code(0s)) ::kill(pid_, number);
}

std::optional<int> ChildProcess::exit_code(Nanos within) {
  if (exit_code_ || pid_ <= 0) return exit_code_;
  eventually(within, [&] {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  });
  return exit_code_;
}

std::string ChildProcess::output() const {
  std::ostringstream text;
  text << std::ifstream(output_path_, std::ios::binary).rdbuf();
  return text.str();
}

MockProcess::MockProcess(std::vector<std::string> options) : process_(mock_arguments(std::move(options))) {
  constexpr std::string_view before = "listening on 127.0.0.1:";
  const bool listens = eventually(20s * time_factor, [&] {
    const std::string said = process_.output();
    const std::size_t at = said.find(before);
    if (at == std::string::npos || said.find('\n', at) == std::string::npos) return false;
    port_ = static_cast<std::uint16_t>(std::strtoul(said.c_str() + at + before.size(), nullptr, 10));
    return port_ != 0;
  });
  if (!listens) throw std::runtime_error("the mock server does not listen; it said:\n" + process_.output());
}

TextFile::TextFile(std::string_view text) : path_(make_file()) {
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
}

TextFile::~TextFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace headgate::support
