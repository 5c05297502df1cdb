#include "config/read.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/units.hpp"

namespace headgate::config {
namespace {

std::string kind_words(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::boolean:
      return "true or false";
    case Node::Kind::number:
      return "a number";
    case Node::Kind::text:
      return "text";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::object:
      return "an object";
  }
  return {};
}

std::string wrong(const Node& node, const std::string& right) {
  std::string message = "is " + shown(node) + ", must be " + right;
  if (node.kind == Node::Kind::null) message += "; leave the field out to have its default";
  return message;
}

// In the place of a text that may be a key.
std::string length_of(std::string_view text) {
  return text.empty() ? "is empty" : "has " + std::to_string(text.size()) + " characters (not shown)";
}

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) list += (i == 0 ? "\"" : ", \"") + names[i] + "\"";
  return list;
}

}  // namespace

std::string shown_number(double value) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  return error == std::errc{} ? std::string(buffer, end) : "?";
}

std::string shown_range(const Range<Nanos>& range) {
  return format_duration(range.low) + ".." + format_duration(range.high);
}

std::string shown_range(const Range<Bytes>& range) { return format_size(range.low) + ".." + format_size(range.high); }

std::string shown_range(const Range<double>& range) {
  return shown_number(range.low) + ".." + shown_number(range.high);
}

void Reader::fault(const Place& at, std::string message) {
  if (at.node != nullptr) at.node->faulty = true;
  problems_.add(at.line, at.path, std::move(message));
}

// Names the kind only: where an object or a list belongs, text may well be a key put in the wrong place.
bool Reader::is_kind(const Place& at, Node::Kind kind, const char* right) {
  if (at.node->kind == kind) return true;
  fault(at, "is " + kind_words(*at.node) + ", must be " + right);
  return false;
}

bool Reader::is_count(const Place& at, std::size_t count, std::size_t low, std::size_t high, const char* what) {
  if (count >= low && count <= high) return true;
  const std::string found = count == 0 ? "is empty" : "has " + std::to_string(count) + " " + what;
  fault(at, found + ", must have " + std::to_string(low) + ".." + std::to_string(high));
  return false;
}

void Reader::unknown_members(const Place& at, const std::vector<std::string>& names) {
  for (const Member& member : at.node->members) {
    if (std::find(names.begin(), names.end(), member.name) != names.end()) continue;
    problems_.add(member.line, member_path(at.path, member.name), "unknown field" + suggestion(member.name, names));
  }
}

void Reader::missing(const Place& at, const char* doc) {
  problems_.add(at.line, at.path, std::string("is missing and has no default: ") + doc);
}

std::optional<std::uint64_t> Reader::whole(const Place& at, std::uint64_t low, std::uint64_t high) {
  const Node& node = *at.node;
  const std::string range = std::to_string(low) + ".." + std::to_string(high);
  std::uint64_t value = 0;
  const char* const begin = node.text.data();
  const char* const end = begin + node.text.size();
  const auto [read, error] = std::from_chars(begin, end, value);
  const bool digits = node.kind == Node::Kind::number && read == end;
  if (digits && error == std::errc{} && value >= low && value <= high) return value;
  const bool is_negative =
      node.kind == Node::Kind::number && node.text.find_first_not_of("-0123456789") == std::string::npos;
  fault(at, digits || is_negative ? "is " + shown(node) + ", must be " + range
                                  : wrong(node, "a whole number " + range + ", without quotes"));
  return std::nullopt;
}

std::optional<std::string> Reader::text(const Place& at, const std::string& right, bool secret) {
  const Node& node = *at.node;
  if (node.kind != Node::Kind::text) {
    const bool number = secret && node.kind == Node::Kind::number;
    fault(at, number ? "is a number, " + length_of(node.text) + ", must be text in quotes" : wrong(node, right));
    return std::nullopt;
  }
  auto expanded = expand(node.text, environment_);
  if (expanded) return std::move(expanded.value);
  fault(at, std::move(expanded.problem));
  return std::nullopt;
}

std::optional<std::size_t> Reader::choice(const Place& at, const std::vector<std::string>& names) {
  const auto chosen = text(at, "one of " + joined(names), false);
  if (!chosen) return std::nullopt;
  const auto found = std::find(names.begin(), names.end(), *chosen);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string message = "is " + in_quotes(*chosen) + ", must be one of " + joined(names);
  if (const auto near = nearest(*chosen, names)) message += "; did you mean \"" + *near + "\"?";
  fault(at, std::move(message));
  return std::nullopt;
}

void Reader::scalar(const Place& at, bool& out, const Any&) {
  if (at.node->kind == Node::Kind::boolean) {
    out = at.node->truth;
  } else {
    fault(at, wrong(*at.node, "true or false, without quotes"));
  }
}

void Reader::scalar(const Place& at, std::uint32_t& out, const Range<std::uint32_t>& rule) {
  if (const auto value = whole(at, rule.low, rule.high)) out = static_cast<std::uint32_t>(*value);
}

void Reader::scalar(const Place& at, std::uint64_t& out, const Range<std::uint64_t>& rule) {
  if (const auto value = whole(at, rule.low, rule.high)) out = *value;
}

void Reader::scalar(const Place& at, std::uint64_t& out, const Range<Bytes>& rule) {
  Bytes size{out};
  scalar(at, size, rule);
  out = size.count;
}

void Reader::scalar(const Place& at, double& out, const Range<double>& rule) {
  const Node& node = *at.node;
  const std::string range = shown_range(rule);
  double value = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto [read, error] = std::from_chars(node.text.data(), end, value);
  if (node.kind != Node::Kind::number || read != end) {
    fault(at, wrong(node, "a number " + range + ", without quotes"));
  } else if (error != std::errc{} || !(value >= rule.low && value <= rule.high)) {
    fault(at, "is " + shown(node) + ", must be " + range);
  } else {
    out = value;
  }
}

void Reader::scalar(const Place& at, Bytes& out, const Range<Bytes>& rule) {
  const auto written = text(at, "a size with its unit in quotes, such as " + in_quotes(format_size(out)), false);
  if (!written) return;
  const auto size = parse_size(*written);
  if (!size) {
    fault(at, "is " + in_quotes(*written) + ", " + size.problem);
  } else if (*size < rule.low || *size > rule.high) {
    fault(at, "is " + in_quotes(*written) + ", must be " + shown_range(rule));
  } else {
    out = *size;
  }
}

void Reader::scalar(const Place& at, Nanos& out, const Range<Nanos>& rule) {
  std::string right = "a duration with its unit in quotes, such as \"500ms\" or \"30s\"";
  const Node& node = *at.node;
  const bool digits = node.kind == Node::Kind::number && node.text.find_first_not_of("0123456789") == std::string::npos;
  if (digits && node.text.size() < 20) {
    right = "a duration with its unit in quotes: \"" + node.text + "s\" for seconds, \"" + node.text +
            "ms\" for milliseconds";
  }
  const auto written = text(at, right, false);
  if (!written) return;
  const auto duration = parse_duration(*written);
  if (!duration) {
    fault(at, "is " + in_quotes(*written) + ", " + duration.problem);
  } else if (*duration < rule.low || *duration > rule.high) {
    fault(at, "is " + in_quotes(*written) + ", must be " + shown_range(rule));
  } else {
    out = *duration;
  }
}

void Reader::scalar(const Place& at, std::string& out, const Text& rule) {
  auto written = text(at, std::string("text: ") + rule.form, rule.hidden);
  if (!written) return;
  const std::string problem = rule.problem(*written);
  // what stands before an @ in a url is a password
  const bool password = written->find('@') != std::string::npos && written->find("://") != std::string::npos;
  if (problem.empty()) {
    out = std::move(*written);
  } else if (rule.hidden) {
    fault(at, length_of(*written) + ", " + problem);
  } else {
    fault(at, "is " + (password ? "\"***\"" : in_quotes(*written)) + ", " + problem);
  }
}

void Reader::scalar(const Place& at, Secret& out, const Text& rule) {
  auto written = text(at, "text in quotes", true);
  if (!written) return;
  const std::string problem = rule.problem(*written);
  if (problem.empty()) {
    out = Secret(std::move(*written));
  } else {
    fault(at, length_of(*written) + ", " + problem);
  }
}

}  // namespace headgate::config
