#include "backends/mock/server.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "backends/mock/profile_file.hpp"
#include "backends/text_file.hpp"

namespace headgate::mock {
namespace {

// Empty, or what is wrong with the options.
std::string check(const MockOptions& options) {
  if (options.replicas < 1 || options.replicas > 256) {
    return "replicas must be from 1 to 256, not " + std::to_string(options.replicas);
  }
  if (options.slots && (*options.slots < 1 || *options.slots > 65536)) {
    return "slots must be from 1 to 65536, not " + std::to_string(*options.slots);
  }
  if (!(options.time_scale >= 0.001 && options.time_scale <= 1000)) {
    return "time-scale must be from 0.001 to 1000, not " + std::to_string(options.time_scale);
  }
  if (!backends::Endpoint::numeric(options.host, 0)) {
    return "host must be an IP address such as 127.0.0.1, not \"" + options.host + "\"";
  }
  for (const unsigned first : {options.port, options.control_port}) {
    if (first + options.replicas - 1u > 65535) {
      return "port " + std::to_string(first) + " leaves no room for " + std::to_string(options.replicas) + " replicas";
    }
  }
  return {};
}

constexpr std::size_t plan_bytes_max = 8 << 20;

std::vector<PlannedControl> load_faults(const MockOptions& options, std::string& problem) {
  const auto text = backends::read_text_file(options.faults, plan_bytes_max, problem);
  if (!text) {
    problem = "faults " + options.faults + " " + problem;
    return {};
  }
  auto faults = read_fault_plan(*text, options.replicas, problem);
  std::erase_if(problem, [](char c) { return static_cast<unsigned char>(c) < ' '; });  // of a name in the file
  if (!problem.empty()) problem = options.faults + ": " + problem;
  return faults;
}

// Every stream is a descriptor; the usual soft limit of 1024 is reached long before connections_max.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// SIGINT and SIGTERM end the loop.
class EndSignals final : public backends::Loop::Watched {
 public:
  explicit EndSignals(backends::Loop& loop) : loop_(loop) {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
    fd_ = signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
    loop_.watch(fd_, *this);
  }
  ~EndSignals() { ::close(fd_); }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

 private:
  void on_ready(std::uint32_t) override { loop_.stop(); }

  backends::Loop& loop_;
  int fd_;
};

constexpr int plan_lines_at_once = 100;

// On standard output, unless nobody reads it there.
void say(Nanos at, const FaultPlan::Due& due) {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) <= 0) return;
  std::printf("%6.1f s  replica %u: %.200s\n", std::chrono::duration<double>(at).count(), due.replica,
              due.text.c_str());
  std::fflush(stdout);
}

void announce(const MockOptions& options, const Server& server) {
  for (const auto& replica : server.replicas()) {
    std::string line = "mock " + replica->profile().name + " listening on " + options.host + ":";
    line += std::to_string(replica->port());
    if (replica->control_port() != 0) {
      line += ", control on " + options.host + ":" + std::to_string(replica->control_port());
    }
    std::puts(line.c_str());
  }
  std::fflush(stdout);
}

}  // namespace

Server::Server(backends::Loop& loop, MockOptions options, std::span<const engine::Profile> profiles,
               std::vector<PlannedControl> faults)
    : options_(std::move(options)),
      scratch_(loop),
      faults_(std::move(faults)),
      plan_timer_(loop, [this] { obey_plan(); }) {
  for (std::uint16_t i = 0; i < options_.replicas; ++i) {
    engine::Profile profile = profiles[i % profiles.size()];
    if (options_.slots) profile.slots = *options_.slots;
    replicas_.push_back(
        std::make_unique<Replica>(loop, scratch_, options_, engine::at_speed(profile, options_.time_scale), i));
  }
}

bool Server::start(std::string& problem) {
  for (const auto& replica : replicas_) {
    if (!replica->start(problem)) return false;
  }
  started_ = std::chrono::steady_clock::now();
  plan_.emplace(faults_, options_.replicas, options_.seed, started_);
  plan_timer_.set(plan_->next());
  return true;
}

void Server::obey_plan() {
  const Time now = std::chrono::steady_clock::now();
  for (int n = 0; n < plan_lines_at_once && plan_->next() <= now; ++n) {  // then callers have their turn
    auto due = plan_->take();
    if (!due) continue;
    std::string problem;
    replicas_[due->replica]->obey(std::move(due->control), nullptr, problem);
    if (!problem.empty()) std::fprintf(stderr, "headgate mock: %s\n", problem.c_str());
    say(due->at - started_, *due);
  }
  plan_timer_.set(plan_->next());
}

void Server::stop() {
  plan_timer_.set(never);
  for (const auto& replica : replicas_) replica->stop();
}

int serve(const MockOptions& options) {
  std::string problem = check(options);
  std::vector<engine::Profile> profiles;
  for (const std::string& name : options.profiles) {
    if (!problem.empty()) break;
    if (const auto profile = load_profile(name, problem)) profiles.push_back(*profile);
  }
  std::vector<PlannedControl> faults;
  if (problem.empty() && !options.faults.empty()) faults = load_faults(options, problem);
  if (!problem.empty()) {
    std::fprintf(stderr, "headgate mock: %s\n", problem.c_str());
    return 2;
  }
  raise_descriptor_limit();
  ::signal(SIGPIPE, SIG_IGN);
  backends::Loop loop;
  Server server(loop, options, profiles, std::move(faults));
  if (!server.start(problem)) {
    std::fprintf(stderr, "headgate mock: %s\n", problem.c_str());
    return 1;
  }
  const EndSignals signals(loop);
  announce(options, server);
  loop.run();
  server.stop();
  return 0;
}

}  // namespace headgate::mock
