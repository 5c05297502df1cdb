#include "loadtest/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "loadtest/timeline_csv.hpp"

namespace headgate::loadtest {
namespace {

std::string open_file(const char* option, const std::string& path, std::ofstream& out) {
  if (path.empty()) return {};
  errno = 0;
  out.open(path, std::ios::binary);
  return out ? std::string{} : std::string{option} + ": " + path + " cannot be written: " + std::strerror(errno);
}

bool written(const std::string& path, std::ofstream& out) {
  out.close();
  if (!out) std::fprintf(stderr, "headgate: %s: cannot be written\n", path.c_str());
  return static_cast<bool>(out);
}

// Standard output may be taken by the JSON.
std::FILE* words_of(const LoadOptions& options) { return options.json == "-" ? stderr : stdout; }

}  // namespace

std::string Output::open(const LoadOptions& options) {
  for (const std::string& condition : options.expect) {
    if (!is_condition(condition)) return "expect is \"" + condition + "\"; a condition such as cut>=5 is wanted";
  }
  std::string problem = options.json == "-" ? "" : open_file("json", options.json, json_);
  if (problem.empty()) problem = open_file("records", options.records, records_);
  if (problem.empty()) problem = open_file("timeline", options.timeline, timeline_);
  if (problem.empty()) problem = open_file("attempts", options.attempts, attempts_);
  return problem;
}

bool Output::show(const LoadOptions& options, const Summary& summary, const std::string& table) {
  bool good = true;
  const std::string text =
      summary.dump(2, ' ', false, Summary::error_handler_t::replace);  // names of files are any bytes
  if (options.json == "-") {
    std::printf("%s\n", text.c_str());
  } else {
    std::fputs(table.c_str(), stdout);
    if (!options.json.empty()) {
      json_ << text << '\n';
      good = written(options.json, json_);
    }
  }
  std::FILE* const words = words_of(options);
  for (const std::string& condition : options.expect) {
    const std::string why = check_condition(summary, condition);
    if (!why.empty()) std::fprintf(words, "expected %s\n", why.c_str());
    good = good && why.empty();
  }
  std::fflush(words);
  return good;
}

bool Output::report(const LoadOptions& options, const RunResult& result) {
  const Summary summary = summarize(result);
  bool good = show(options, summary, table_of(summary));
  if (!options.records.empty()) {
    write_records(records_, result);
    good = written(options.records, records_) && good;
  }
  if (!options.timeline.empty()) {
    write_timeline(timeline_, result);
    good = written(options.timeline, timeline_) && good;
  }
  if (!options.attempts.empty()) good = written(options.attempts, attempts_) && good;
  if (options.verdict) {
    const RunVerdict verdict = verdict_of(summary);
    std::fputs(verdict.text.c_str(), words_of(options));
    std::fflush(words_of(options));
    good = good && verdict.pass;
  }
  return good;
}

}  // namespace headgate::loadtest
