#include "loadtest/trace.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string_view>

#include "backends/json_nesting.hpp"
#include "loadtest/event_trace.hpp"
#include "loadtest/mapped_file.hpp"

namespace headgate::loadtest {
namespace {

constexpr std::string_view csv_header = "TIMESTAMP,ContextTokens,GeneratedTokens";

std::optional<int> digits(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty() || text.front() == '-') return {};
  return value;
}

std::optional<Nanos> fraction(std::string_view text) {
  if (text.empty()) return Nanos{0};
  if (text.front() != '.' || text.size() < 2 || text.size() > 10) return {};
  const auto value = digits(text.substr(1));
  if (!value) return {};
  std::int64_t nanos = *value;
  for (std::size_t have = text.size() - 1; have < 9; ++have) nanos *= 10;
  return Nanos{nanos};
}

// "2023-11-16 18:15:46.6805900" as time since 1970.
std::optional<Nanos> stamp(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[10] != ' ' || text[13] != ':' || text[16] != ':') {
    return {};
  }
  const auto year = digits(text.substr(0, 4)), month = digits(text.substr(5, 2)), day = digits(text.substr(8, 2));
  const auto hour = digits(text.substr(11, 2)), minute = digits(text.substr(14, 2)),
             second = digits(text.substr(17, 2));
  const auto rest = fraction(text.substr(19));
  if (!year || !month || !day || !hour || !minute || !second || !rest) return {};
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok() || *year < 1970 || *year > 2200 || *hour > 23 || *minute > 59 || *second > 59) return {};
  return std::chrono::sys_days{date}.time_since_epoch() + std::chrono::hours{*hour} + std::chrono::minutes{*minute} +
         std::chrono::seconds{*second} + *rest;
}

std::optional<std::uint32_t> tokens(std::string_view text) {
  const auto value = digits(text);
  if (!value || *value < 1 || *value > static_cast<int>(trace_tokens_max)) return {};
  return static_cast<std::uint32_t>(*value);
}

std::string shortened(std::string_view text) { return std::string{text.substr(0, 60)}; }
std::string in_quotes(std::string_view text) { return "\"" + shortened(text) + "\""; }

// Fills `out` or returns what is wrong with the line.
std::string read_csv_line(std::string_view line, Planned& out) {
  const std::size_t first = line.find(','), second = line.find(',', first == line.npos ? first : first + 1);
  if (second == line.npos || line.find(',', second + 1) != line.npos) {
    return "three fields separated by commas are wanted, not " + in_quotes(line);
  }
  const std::string_view time = line.substr(0, first), input = line.substr(first + 1, second - first - 1);
  const auto at = stamp(time);
  if (!at) return "TIMESTAMP is " + in_quotes(time) + "; YYYY-MM-DD HH:MM:SS.fffffff is wanted";
  const auto in = tokens(input), produced = tokens(line.substr(second + 1));
  if (!in) return "ContextTokens is " + in_quotes(input) + "; a whole number in 1..1000000 is wanted";
  if (!produced) {
    return "GeneratedTokens is " + in_quotes(line.substr(second + 1)) + "; a whole number in 1..1000000 is wanted";
  }
  out = {.at = *at, .input = *in, .output = *produced};
  return {};
}

// "input is 0; " or "input is missing; ", to be followed by what is wanted.
std::string found(const std::string& name, const nlohmann::json& object) {
  const auto value = object.find(name);
  return name + " is " + (value == object.end() ? "missing" : shortened(value->dump())) + "; ";
}

// One id for each 512 tokens of the prompt, the last one for what is left.
std::string read_hash_ids(const nlohmann::json& object, std::uint32_t input, std::vector<std::uint32_t>& out) {
  const auto ids = object.find("hash_ids");
  const std::size_t wanted = (input + prefix_block_tokens - 1) / prefix_block_tokens;
  const bool list = ids != object.end() && ids->is_array();
  if (!list || ids->size() != wanted) {
    return (list ? "hash_ids has " + std::to_string(ids->size()) + " ids; " : found("hash_ids", object)) +
           "a list of " + std::to_string(wanted) + " is wanted, one for each 512 tokens of input_length";
  }
  for (const auto& id : *ids) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > UINT32_MAX) {
      return "hash_ids holds " + shortened(id.dump()) + "; whole numbers in 0..4294967295 are wanted";
    }
    out.push_back(id.get<std::uint32_t>());
  }
  return {};
}

// `ids` gets those of a Mooncake line.
std::string read_json_line(std::string_view line, Planned& out, std::vector<std::uint32_t>& ids) {
  if (backends::too_deep(line)) return "nested too deep: " + in_quotes(line);
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return "not a JSON object: " + in_quotes(line);
  const bool mooncake = object.contains("timestamp");
  const char* const time = mooncake ? "timestamp" : "at_ms";
  const auto at = object.find(time);
  if (at == object.end() || !at->is_number() || at->get<double>() < 0 || at->get<double>() > 1e12) {
    return found(time, object) + "a number in 0..1e12 is wanted";
  }
  out.at = Nanos{std::llround(at->get<double>() * 1e6)};
  for (const auto& [name, target] : {std::pair{mooncake ? "input_length" : "input", &out.input},
                                     {mooncake ? "output_length" : "output", &out.output}}) {
    const auto value = object.find(name);
    if (value == object.end() || !value->is_number_unsigned() || value->get<std::uint64_t>() < 1 ||
        value->get<std::uint64_t>() > trace_tokens_max) {
      return found(name, object) + "a whole number in 1..1000000 is wanted";
    }
    *target = value->get<std::uint32_t>();
  }
  return mooncake ? read_hash_ids(object, out.input, ids) : std::string{};
}

}  // namespace

TraceResult read_trace(std::istream& in, const std::string& name, std::uint64_t limit) {
  TraceResult result;
  const auto fail = [&](std::size_t number, const std::string& what) {
    result.problem = name + ":" + std::to_string(number) + ": " + what;
    result.requests.clear();
    return result;
  };
  std::string line;
  std::size_t number = 0;
  bool csv = false;
  auto prefixes = std::make_shared<std::vector<std::uint32_t>>();
  std::vector<std::size_t> ends;  // of each request's ids
  while ((limit == 0 || result.requests.size() < limit) && std::getline(in, line)) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (number == 1 && !line.starts_with('{')) {
      if (line != csv_header) {
        return fail(1, "neither the header " + std::string{csv_header} + " nor a JSON object: " + in_quotes(line));
      }
      csv = true;
      continue;
    }
    if (result.requests.size() == trace_lines_max) return fail(number, "more than 10000000 requests");
    Planned planned;
    const std::string problem = csv ? read_csv_line(line, planned) : read_json_line(line, planned, *prefixes);
    if (!problem.empty()) return fail(number, problem);
    result.requests.push_back(planned);
    ends.push_back(prefixes->size());
  }
  if (in.bad()) return fail(number + 1, "cannot be read");
  if (result.requests.empty()) return fail(number + 1, "no requests");
  for (std::size_t n = 0; n < ends.size(); ++n) {
    const std::size_t begin = n == 0 ? 0 : ends[n - 1];
    result.requests[n].prefix = std::span(*prefixes).subspan(begin, ends[n] - begin);
  }
  if (!prefixes->empty()) result.prefixes = std::move(prefixes);
  std::ranges::stable_sort(result.requests, {}, &Planned::at);
  const Nanos begin = result.requests.front().at;
  for (Planned& planned : result.requests) planned.at -= begin;
  return result;
}

TraceResult read_trace_file(const std::string& path, std::uint64_t limit) {
  std::ifstream in{path, std::ios::binary};
  if (!in) return {.problem = path + ":0: cannot be opened"};
  std::string begin(32, '\0');
  const bool pipe = !std::filesystem::is_regular_file(path);  // which cannot be read twice
  if (!pipe) in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  if (is_event_log(begin)) {
    const MappedFile log(path);
    return log.problem().empty() ? read_event_trace(log.text(), path, limit) : TraceResult{.problem = log.problem()};
  }
  if (!pipe) {
    in.clear();
    in.seekg(0);
  }
  return read_trace(in, path, limit);
}

void write_azure_csv(std::ostream& out, const std::vector<Planned>& requests) {
  out << csv_header;
  const auto begin = std::chrono::sys_days{std::chrono::January / 1 / 2026};
  for (const Planned& planned : requests) {
    const auto at = begin + planned.at;
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss time{at - day};
    char text[96];
    std::snprintf(text, sizeof text, "\r\n%04d-%02u-%02u %02d:%02d:%02d.%07d,%u,%u", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                  static_cast<int>(time.seconds().count()), static_cast<int>(time.subseconds().count() / 100),
                  planned.input, planned.output);
    out << text;
  }
}

}  // namespace headgate::loadtest
