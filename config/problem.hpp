// What is wrong with a configuration file: one entry per fault, all faults of a file in one run. The list is bounded:
// after 1,000 problems one last entry says that more were left out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::config {

struct Problem {
  unsigned line = 0;    // from 1; 0 when the file could not be read, or the value was set from outside of it
  std::string path;     // JSON path: $.pools.small.backends[0].slots
  std::string message;  // the value found and what would be right; never a secret
};

// "FILE:line: path: message"
std::string to_text(const Problem& problem, std::string_view file);

class Problems {
 public:
  static constexpr std::size_t max_kept = 1000;

  void add(unsigned line, std::string path, std::string message);
  bool empty() const { return list_.empty(); }
  std::vector<Problem> take();  // by line

 private:
  std::vector<Problem> list_;
  std::size_t left_out_ = 0;
};

}  // namespace headgate::config
