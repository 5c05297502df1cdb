#include "config/problem.hpp"

#include <algorithm>
#include <utility>

namespace headgate::config {

std::string to_text(const Problem& problem, std::string_view file) {
  std::string text(file);
  text += ':';
  if (problem.line != 0) text += std::to_string(problem.line) + ':';
  text += ' ';
  if (!problem.path.empty()) text += problem.path + ": ";
  return text + problem.message;
}

void Problems::add(unsigned line, std::string path, std::string message) {
  if (list_.size() == max_kept) {
    ++left_out_;
    return;
  }
  list_.push_back({line, std::move(path), std::move(message)});
}

std::vector<Problem> Problems::take() {
  std::stable_sort(list_.begin(), list_.end(), [](const Problem& a, const Problem& b) { return a.line < b.line; });
  if (left_out_ != 0) {
    list_.push_back({list_.back().line, "$", std::to_string(left_out_) + " more problems are not shown"});
    left_out_ = 0;
  }
  return std::exchange(list_, {});
}

}  // namespace headgate::config
