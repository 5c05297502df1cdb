// Where the results of a run go, as its options say: a table or JSON on standard output, files, conditions, a verdict.
#pragma once

#include <fstream>
#include <string>

#include "loadtest/options.hpp"
#include "loadtest/report.hpp"
#include "loadtest/runner.hpp"

namespace headgate::loadtest {

class Output {
 public:
  // Before the run, and last of what may be wrong with it: it empties the files. Empty, or what is wrong.
  std::string open(const LoadOptions& options);
  // False: a condition or the verdict failed, or a file could not be written, which is said.
  bool report(const LoadOptions& options, const RunResult& result);
  // The same for a summary of another kind: no records, no verdict.
  bool show(const LoadOptions& options, const Summary& summary, const std::string& table);
  std::ostream& attempts() { return attempts_; }  // to be written to while it runs

 private:
  std::ofstream json_, records_, timeline_, attempts_;
};

}  // namespace headgate::loadtest
