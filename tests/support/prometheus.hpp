// Metrics text as a test reads it: samples by name and labels.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::support {

using Labels = std::map<std::string, std::string>;

struct Sample {
  std::string name;
  Labels labels;
  double value = 0;
};

// Comments are left out; a line that is no sample throws std::runtime_error with the line.
std::vector<Sample> parse_metrics(std::string_view text);

// The sum over the samples of that name whose labels include `labels`; nothing if there is none.
std::optional<double> sum_of(const std::vector<Sample>& samples, std::string_view name, const Labels& labels = {});

}  // namespace headgate::support
