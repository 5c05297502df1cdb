#include "loadtest/timeline.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_set>

#include "loadtest/nearest_rank.hpp"

namespace headgate::loadtest {
namespace {

bool read_key(std::string_view name, std::string_view value, TimelineEvent& event, bool& timed) {
  if (name == "at") {
    const auto when = parse_when(value);
    if (when) event.when = *when;
    return timed = when.has_value();
  }
  if (name == "streams") {
    const auto streams = parse_number(value);
    if (!streams || *streams < 0 || *streams > 1e6) return false;
    event.streams_min = static_cast<std::uint32_t>(*streams);
    return true;
  }
  std::string* target = name == "label"  ? &event.label
                        : name == "kill" ? &event.kill
                        : name == "run"  ? &event.command
                                         : nullptr;
  if (target == nullptr) return false;
  *target = value;
  return !value.empty();
}

double ttft_p99_ms(const std::vector<Record>& records, Nanos from, Nanos to) {
  std::vector<Nanos> all;
  for (const Record& record : records) {
    if (record.intended >= from && record.intended < to && record.ttft()) all.push_back(*record.ttft());
  }
  if (all.empty()) return 0;
  std::ranges::sort(all);
  return nearest_rank_ms(all, 0.99);
}

}  // namespace

std::optional<TimelineEvent> parse_event(std::string_view text, std::string& problem) {
  TimelineEvent event;
  bool timed = false;
  std::string_view rest = text;
  while (!rest.empty()) {
    // The command is the rest of the text: it may hold semicolons of its own.
    const std::string_view part = rest.starts_with("run=") ? rest : rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view value = equals == part.size() ? std::string_view{} : part.substr(equals + 1);
    if (!read_key(part.substr(0, equals), value, event, timed)) {
      problem =
          "event: \"" + std::string{part} + "\" is not one of at=SHARE or DURATION, label=, kill=, streams=N, run=";
      return std::nullopt;
    }
  }
  if (!timed || event.command.empty()) {
    problem = "event: \"" + std::string{text} + "\" needs at= and run=";
    return std::nullopt;
  }
  if (event.label.empty()) event.label = event.command;
  return event;
}

pid_t spawn_shell(const std::string& command) {
  posix_spawn_file_actions_t files;
  if (posix_spawn_file_actions_init(&files) != 0) return -1;
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  // A restarted server must not inherit our connections: they would outlive us.
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  std::string shell = "/bin/sh", option = "-c", text = command;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, shell.c_str(), &files, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  return failed ? -1 : pid;
}

bool reap(pid_t pid, int& exit_code) {
  int status = 0;
  const pid_t ended = waitpid(pid, &status, WNOHANG);
  if (ended == 0) return false;
  exit_code = ended < 0 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

KillAnalysis analyse_kill(const TimelineEvent& event, const Happened& happened, const KillBounds& bounds,
                          const std::vector<Record>& records, const Names& names) {
  KillAnalysis result;
  result.backend = event.kill;
  result.at = happened.begun;
  result.sending = happened.sending.size();
  const Nanos arrived_by = std::max(happened.ended, happened.begun) + bounds.slack;
  const std::unordered_set<std::uint64_t> sending(happened.sending.begin(), happened.sending.end());
  for (std::uint64_t id = 0; id < records.size(); ++id) {
    const Record& record = records[id];
    const bool is_cut = (record.outcome == Outcome::cut || record.outcome == Outcome::cut_dirty) &&
                        names[record.backend] == event.kill && record.ended >= happened.begun &&
                        record.ended < bounds.next_kill_of_it;
    if (is_cut) {
      ++(record.outcome == Outcome::cut ? result.cut : result.cut_dirty);
      if (sending.contains(id)) continue;
      const bool on_the_way = record.first && *record.first >= happened.begun && *record.first <= arrived_by;
      ++(on_the_way ? result.begun_on_the_way : result.unexplained);
    } else if (sending.contains(id)) {
      const bool on_the_way = record.outcome == Outcome::ok && record.last <= arrived_by;
      ++(on_the_way ? result.finished_on_the_way : result.unexplained);
    }
  }
  result.exact = result.unexplained == 0 && result.cut_dirty == 0;
  constexpr Nanos span = std::chrono::seconds(10);
  result.ttft_p99_before_ms = ttft_p99_ms(records, happened.begun - span, happened.begun);
  result.ttft_p99_after_ms = ttft_p99_ms(records, happened.begun, happened.begun + span);
  return result;
}

}  // namespace headgate::loadtest
