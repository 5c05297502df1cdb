#include "loadtest/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "loadtest/report.hpp"

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

}  // namespace

std::string Output::open(const LoadOptions& options) {
  const std::string problem = options.json == "-" ? "" : open_file("json", options.json, json_);
  return problem.empty() ? open_file("records", options.records, records_) : problem;
}

bool Output::report(const LoadOptions& options, const Slo& slo, const RunResult& result) {
  const Summary summary = summarize(result, slo);
  bool good = true;
  if (options.json == "-") {
    std::printf("%s\n", summary.dump(2).c_str());
  } else {
    std::fputs(table_of(summary).c_str(), stdout);
    if (!options.json.empty()) {
      json_ << summary.dump(2) << '\n';
      good = written(options.json, json_);
    }
  }
  if (!options.records.empty()) {
    write_records(records_, result);
    good = written(options.records, records_) && good;
  }
  std::FILE* const words = options.json == "-" ? stderr : stdout;
  for (const std::string& condition : options.expect) {
    const std::string why = check_condition(summary, condition);
    if (!why.empty()) std::fprintf(words, "expected %s\n", why.c_str());
    good = good && why.empty();
  }
  if (options.verdict) {
    const RunVerdict verdict = verdict_of(summary);
    std::fputs(verdict.text.c_str(), words);
    good = good && verdict.pass;
  }
  std::fflush(words);
  return good;
}

}  // namespace headgate::loadtest
