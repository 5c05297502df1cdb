#include "support/prometheus.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace headgate::support {
namespace {

Sample parse_line(const std::string& line) {
  Sample sample;
  const auto bad = [&] { return std::runtime_error("not a metrics sample: " + line); };
  std::size_t at = line.find_first_of("{ ");
  if (at == std::string::npos || at == 0) throw bad();
  sample.name = line.substr(0, at);
  if (line[at] == '{') {
    for (++at; at < line.size() && line[at] != '}';) {
      const std::size_t equals = line.find("=\"", at);
      if (equals == std::string::npos) throw bad();
      const std::string label = line.substr(at, equals - at);
      std::string value;
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\') ++at;
        value += line[at];
      }
      sample.labels[label] = value;
      if (++at < line.size() && line[at] == ',') ++at;
    }
    if (++at >= line.size()) throw bad();
  }
  char* end = nullptr;
  const char* begin = line.c_str() + at;
  sample.value = std::strtod(begin, &end);
  if (end == begin) throw bad();
  return sample;
}

}  // namespace

std::vector<Sample> parse_metrics(std::string_view text) {
  std::vector<Sample> samples;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string line(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty() && line.front() != '#') samples.push_back(parse_line(line));
  }
  return samples;
}

std::optional<double> sum_of(const std::vector<Sample>& samples, std::string_view name, const Labels& labels) {
  std::optional<double> sum;
  for (const Sample& sample : samples) {
    const bool wanted = sample.name == name && std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
                          const auto found = sample.labels.find(label.first);
                          return found != sample.labels.end() && found->second == label.second;
                        });
    if (wanted) sum = sum.value_or(0) + sample.value;
  }
  return sum;
}

}  // namespace headgate::support
