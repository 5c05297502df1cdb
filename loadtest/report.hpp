// The end of a run: one JSON summary, from which the table, the conditions of --expect and the verdict are taken, so
// that they cannot disagree. Latencies are in milliseconds, rates per second; its fields are listed in report.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "loadtest/runner.hpp"

namespace headgate::loadtest {

using Summary = nlohmann::ordered_json;

Summary summarize(const RunResult& result);

// As text for people; ends with a newline.
std::string table_of(const Summary& summary);
std::string faults_of(const Summary& summary);  // a line for each of "faults", which must be there

// "cut>=5", "ttft_ms.p99<800", "kills.0.exact=true": a path into the summary, one of = == != < <= > >=, and a number,
// true, false or a word. Returns an empty text when it holds, else why not; a bad path or condition is a reason too.
std::string check_condition(const Summary& summary, std::string_view condition);
bool is_condition(std::string_view text);  // its form is right

// PASS needs: something was sent, nothing failed before its first token, no wrong count, every command worked, each
// kill exact with at least its streams=N cut, no stream cut elsewhere.
struct RunVerdict {
  bool pass = false;
  std::string text;  // lines for people, the last one PASS or FAIL
};
RunVerdict verdict_of(const Summary& summary);

// One JSON line per request.
void write_records(std::ostream& out, const RunResult& result);

}  // namespace headgate::loadtest
