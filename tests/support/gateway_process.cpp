#include "support/gateway_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace headgate::support {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  std::ofstream(fresh, std::ios::binary | std::ios::trunc) << text;
  std::filesystem::rename(fresh, path);  // a reader sees the old text or the new, never half
}

std::string make_folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "headgate-test-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) throw std::system_error(errno, std::generic_category(), "mkdtemp");
  return pattern;
}

pid_t run(const std::vector<std::string>& command, const Started& how, const std::string& output) {
  std::vector<std::string> environment = how.environment;
  const rlimit descriptors{how.descriptors_max, how.descriptors_max};
  for (char** entry = environ; *entry; ++entry) environment.emplace_back(*entry);
  std::vector<char*> arguments, variables;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& entry : environment) variables.push_back(const_cast<char*>(entry.c_str()));
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (out < 0) throw std::system_error(errno, std::generic_category(), output);
  const pid_t child = ::fork();
  if (child == 0) {  // only calls that are safe after fork in a process with threads
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    if (how.descriptors_max > 0) ::setrlimit(RLIMIT_NOFILE, &descriptors);
    ::execve(arguments[0], arguments.data(), variables.data());
    ::_exit(126);
  }
  ::close(out);
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  return child;
}

// The last lines of a log that may have thousands.
std::string tail_of(const std::string& text, std::size_t lines) {
  std::size_t from = text.size();
  for (; lines > 0 && from > 0; --lines) from = from >= 2 ? text.rfind('\n', from - 2) + 1 : 0;
  return (from > 0 ? "...\n" : "") + text.substr(from);
}

// The admin listener wants its own address as Host.
std::string addressed(std::string text, std::uint16_t port) {
  const std::string_view any = "gateway.test";
  return text.replace(text.find(any), any.size(), "127.0.0.1:" + std::to_string(port));
}

bool answers_200(std::uint16_t port, std::string_view target) {
  try {
    RawClient client(port);
    return client.ask(addressed(request("GET", target, {}, {}), port), 2s).status == 200;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

GatewayProcess::GatewayProcess(nlohmann::json config, const Started& how)
    : config_(std::move(config)), folder_(make_folder()) {
  for (int attempts = 5; attempts > 0; --attempts)
    if (start(how)) return;
  const std::string said = output();
  stop();
  throw std::runtime_error("the gateway did not become ready; it said:\n" + said + "\nconfig: " + config_.dump(1));
}

// False if the process ended, as it does when another one took a port meanwhile.
bool GatewayProcess::start(const Started& how) {
  port_ = free_port();
  admin_port_ = free_port();
  exit_code_.reset();
  write_file(folder_ + "/config.json", with_addresses(config_).dump(1));
  std::vector<std::string> command{product(), "serve", "--config", config_path()};
  command.insert(command.end(), how.options.begin(), how.options.end());
  pid_ = run(command, how, folder_ + "/output");
  const char* const target = how.wait_ready ? "/readyz" : "/healthz";
  const bool tls = config_.contains("listen") && config_["listen"].contains("tls");
  return eventually(how.ready_within * time_factor,
                    [&] { return exit_code(0s).has_value() || answers_200(tls ? admin_port_ : port_, target); }) &&
         !exit_code_;
}

nlohmann::json GatewayProcess::with_addresses(nlohmann::json config) const {
  auto& listen = config["listen"];
  if (!listen.contains("data")) listen["data"] = "127.0.0.1:" + std::to_string(port_);
  if (!listen.contains("admin")) listen["admin"] = "127.0.0.1:" + std::to_string(admin_port_);
  const char* const workers = std::getenv("HEADGATE_TEST_WORKERS");
  if (workers != nullptr && !config.contains("workers")) config["workers"] = std::atoi(workers);
  auto& log = config["log"];
  if (!log.contains("access")) log["access"] = folder_ + "/access.log";
  return config;
}

GatewayProcess::~GatewayProcess() {
  const bool ended_by_itself = !exit_code_ && exit_code(0s).has_value();
  stop();
  const int code = exit_code_.value_or(-1);
  if (ended_by_itself || (code != 0 && code != 3 && code != 128 + SIGKILL))
    ADD_FAILURE() << "the gateway ended " << (ended_by_itself ? "by itself " : "") << "with exit code " << code;
  if (testing::Test::HasFailure())
    std::cerr << "--- configuration\n"
              << read_file(folder_ + "/config.json") << "\n--- gateway output\n"
              << output() << "--- access log\n"
              << tail_of(access_text(), 40) << "---\n";
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void GatewayProcess::stop() {
  if (pid_ <= 0 || exit_code(0s)) return;
  signal(SIGTERM);
  if (exit_code(scaled(3s))) return;
  signal(SIGKILL);
  exit_code(10s);
}

Reply GatewayProcess::admin_get(std::string_view target) const {
  return ask_once(admin_port_, addressed(request("GET", target, {}, {}), admin_port_));
}

Reply GatewayProcess::admin_post(std::string_view target, std::string_view body) const {
  return ask_once(admin_port_, addressed(request("POST", target, body, "x-headgate-admin: 1\r\n"), admin_port_));
}

nlohmann::json GatewayProcess::state() const {
  const Reply reply = admin_get("/admin/state");
  EXPECT_EQ(reply.status, 200) << reply.raw;
  return nlohmann::json::parse(reply.body, nullptr, false);
}

std::string GatewayProcess::metrics_text() const {
  const Reply reply = admin_get("/metrics");
  EXPECT_EQ(reply.status, 200) << reply.raw;
  return reply.body;
}

double GatewayProcess::metric(std::string_view name, const Labels& labels) const {
  const std::string text = metrics_text();
  const auto samples = parse_metrics(text);
  if (!sum_of(samples, name) && text.find("# TYPE " + std::string(name) + " ") == std::string::npos)
    ADD_FAILURE() << "no metric is called " << name << "; there are:\n" << text;
  return sum_of(samples, name, labels).value_or(0);
}

std::vector<nlohmann::json> GatewayProcess::access_lines(std::size_t count, Nanos within) const {
  std::vector<nlohmann::json> lines;
  const bool came = eventually(scaled(within), [&] {
    lines.clear();
    std::istringstream text(access_text());
    for (std::string line; std::getline(text, line) && !text.eof();)  // a line without its end is not whole yet
      lines.push_back(nlohmann::json::parse(line, nullptr, false));
    return lines.size() >= count;
  });
  EXPECT_TRUE(came) << "access log lines: " << lines.size() << ", wanted: " << count;
  for (const auto& line : lines) EXPECT_TRUE(line.is_object()) << "an access log line is not JSON";
  if (lines.size() < count) lines.resize(count, nlohmann::json::object());
  return lines;
}

std::string GatewayProcess::access_text() const { return read_file(folder_ + "/access.log"); }
double GatewayProcess::resident_mib() const {
  double all_pages = 0, resident_pages = 0;
  std::ifstream("/proc/" + std::to_string(pid_) + "/statm") >> all_pages >> resident_pages;
  return resident_pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

std::string GatewayProcess::output() const { return read_file(folder_ + "/output"); }

void GatewayProcess::rewrite_config(std::string_view text) const { write_file(folder_ + "/config.json", text); }
void GatewayProcess::rewrite_config(nlohmann::json config) const {
  rewrite_config(std::string_view(with_addresses(std::move(config)).dump(1)));
}

void GatewayProcess::signal(int number) const {
  if (pid_ > 0 && !exit_code_) ::kill(pid_, number);
}

std::optional<int> GatewayProcess::exit_code(Nanos within) {
  if (exit_code_ || pid_ <= 0) return exit_code_;
  eventually(within, [&] {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  });
  return exit_code_;
}

}  // namespace headgate::support
