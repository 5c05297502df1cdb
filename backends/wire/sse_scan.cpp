#include "backends/wire/sse_scan.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "backends/wire/ascii.hpp"
#include "backends/wire/json_walk.hpp"

namespace headgate::wire {
namespace {

std::size_t line_end_at(std::string_view text, std::size_t from) {
  const char* const end = text.data() + text.size();
  return static_cast<std::size_t>(find_byte<LineEndByte>(text.data() + from, end, end) - text.data());
}

// `text` starts with a line end.
std::size_t line_end_length(std::string_view text) { return text.substr(0, 2) == "\r\n" ? 2 : 1; }

bool contains_ignoring_case(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a | 0x20 : a) == b; };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

bool says_overloaded(std::string_view text) {
  return contains_ignoring_case(text, "overloaded") || contains_ignoring_case(text, "rate_limit");
}

bool is_load_status(std::string_view text) { return text == "429" || text == "503" || text == "529"; }

// Consumes any value; `filled`: a non-empty string, list or object, or a number or true. `text`: the string.
bool read_filled(JsonWalk& walk, bool& filled, std::string_view* text = nullptr) {
  bool any = false;
  bool ok = false;
  switch (walk.peek()) {
    case '"': {
      JsonString string;
      ok = walk.string(string);
      any = !string.raw.empty();
      if (text != nullptr && any) *text = string.raw;
      break;
    }
    case '[':
      ok = walk.array([&] { return any = true, walk.value(); });
      break;
    case '{':
      ok = walk.object([&](const JsonString&) { return any = true, walk.value(); });
      break;
    case 'n':
    case 'f':
      ok = walk.value();
      break;
    default:
      ok = walk.value();
      any = true;
      break;
  }
  filled = filled || any;
  return ok;
}

// A count: the whole part of a number that is not negative; anything else leaves `found` and `out` alone.
bool read_count(JsonWalk& walk, bool& found, std::uint32_t& out) {
  const char first = walk.peek();
  if (first < '0' || first > '9') return walk.value();
  std::string_view raw;
  if (!walk.number(raw)) return false;
  if (raw.find_first_of("eE") != std::string_view::npos) return true;
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t value = 0;
  for (const char c : raw.substr(0, raw.find('.'))) {
    value = std::min(most, value * 10 + static_cast<std::uint64_t>(c - '0'));
  }
  out = static_cast<std::uint32_t>(value);
  found = true;
  return true;
}

bool read_usage(JsonWalk& walk, bool& found, TokenUsage& tokens) {
  if (walk.peek() != '{') return walk.value();
  return walk.object([&](const JsonString& key) {
    if (key.is("prompt_tokens") || key.is("input_tokens")) return read_count(walk, found, tokens.input);
    if (key.is("completion_tokens") || key.is("output_tokens")) return read_count(walk, found, tokens.output);
    if ((key.is("prompt_tokens_details") || key.is("input_tokens_details")) && walk.peek() == '{') {
      return walk.object([&](const JsonString& detail) {
        bool unused = false;
        return detail.is("cached_tokens") ? read_count(walk, unused, tokens.cached) : walk.value();
      });
    }
    return walk.value();
  });
}

bool read_error(JsonWalk& walk, bool& error, bool& overloaded) {
  switch (walk.peek()) {
    case '"': {  // some servers send the message alone
      JsonString text;
      if (!walk.string(text)) return false;
      error = error || !text.raw.empty();
      overloaded = overloaded || says_overloaded(text.raw);
      return true;
    }
    case '{':
      break;
    default:
      return read_filled(walk, error);
  }
  error = true;
  return walk.object([&](const JsonString& key) {
    if (!key.is("type") && !key.is("code")) return walk.value();
    const char first = walk.peek();
    if (first == '"') {
      JsonString text;
      if (!walk.string(text)) return false;
      overloaded = overloaded || says_overloaded(text.raw) || is_load_status(text.raw);
      return true;
    }
    if (first < '0' || first > '9') return walk.value();
    std::string_view raw;
    if (!walk.number(raw)) return false;
    overloaded = overloaded || is_load_status(raw);
    return true;
  });
}

constexpr std::array<std::string_view, 7> content_keys{"content",    "reasoning_content", "reasoning", "refusal",
                                                       "tool_calls", "function_call",     "audio"};

bool is_content_key(const JsonString& key) {
  for (const std::string_view name : content_keys) {
    if (key.is(name)) return true;
  }
  return false;
}

bool read_choice(JsonWalk& walk, EventFacts& facts) {
  if (walk.peek() != '{') return walk.value();
  return walk.object([&](const JsonString& key) {
    if (key.is("delta") && walk.peek() == '{') {
      return walk.object([&](const JsonString& part) {
        return is_content_key(part) ? read_filled(walk, facts.content, &facts.text) : walk.value();
      });
    }
    if (key.is("text")) return read_filled(walk, facts.content, &facts.text);
    if (key.is("finish_reason")) return read_filled(walk, facts.finish);
    return walk.value();
  });
}

void read_data(std::string_view data, EventFacts& facts) {
  JsonWalk walk(data, 0);
  bool ok = false;
  bool no_choice = false;
  if (walk.peek() == '{') {
    ok = walk.object([&](const JsonString& key) {
      if (key.is("choices") && walk.peek() == '[') {
        no_choice = true;
        return walk.array([&] { return no_choice = false, read_choice(walk, facts); });
      }
      if (key.is("usage")) return read_usage(walk, facts.usage, facts.tokens);
      if (key.is("error")) return read_error(walk, facts.error, facts.overloaded);
      return walk.value();
    });
  } else {
    ok = walk.value();
  }
  if (!ok || !walk.at_end()) {
    facts = EventFacts{};
    facts.malformed = true;
    return;
  }
  facts.usage_only = facts.usage && no_choice;
}

// The value of a data line; false for every other line.
bool data_of(std::string_view line, std::string_view& value) {
  if (line.substr(0, 4) != "data" || (line.size() > 4 && line[4] != ':')) return false;
  value = line.substr(std::min<std::size_t>(5, line.size()));
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  return true;
}

}  // namespace

// Where a line starts is told by the bytes before it, so only the scan position needs keeping.
std::size_t EventEnd::find(std::string_view window) {
  std::size_t at = searched_ <= window.size() ? searched_ : 0;
  while (at < window.size()) {
    const char before = at == 0 ? '\n' : window[at - 1];
    if (before == '\r' && window[at] == '\n') {  // the second half of a line end seen before
      ++at;
      continue;
    }
    const bool at_line_start = before == '\n' || before == '\r';
    const std::size_t end = line_end_at(window, at);
    if (end == window.size()) {
      at = end;
      break;
    }
    const std::size_t next = end + line_end_length(window.substr(end));
    if (at_line_start && end == at) {
      searched_ = 0;
      return next;
    }
    at = next;
  }
  searched_ = at;
  return 0;
}

EventFacts read_event(std::string_view event) {
  EventFacts facts;
  if (event.substr(0, 3) == "\xef\xbb\xbf") event.remove_prefix(3);
  thread_local std::string joined;  // for data over several lines only
  std::string_view data;
  bool has_data = false;
  bool several = false;
  for (std::size_t at = 0; at < event.size();) {
    const std::size_t end = line_end_at(event, at);
    std::string_view value;
    if (data_of(event.substr(at, end - at), value)) {
      if (has_data) {
        if (!several) joined.assign(data);
        several = true;
        joined.push_back('\n');
        joined.append(value);
      } else {
        data = value;
        has_data = true;
      }
    }
    at = end == event.size() ? end : end + line_end_length(event.substr(end));
  }
  if (several) data = joined;
  const std::string_view trimmed = trim(data);
  if (trimmed.empty()) {
    facts.comment_only = true;
  } else if (trimmed == "[DONE]") {
    facts.done = true;
  } else {
    read_data(data, facts);
    if (several) facts.text = {};
  }
  return facts;
}

EventFacts EventReader::read(std::string_view event) {
  const std::size_t around = before_.size() + behind_.size();
  if (around != 0 && event.size() > around && event.starts_with(before_) && event.ends_with(behind_)) {
    const std::string_view text = event.substr(before_.size(), event.size() - around);
    const char* const end = text.data() + text.size();
    if (find_byte<JsonStringByte>(text.data(), end, end) == end) {
      EventFacts same;
      same.content = true;
      same.text = text;
      return same;
    }
  }
  const EventFacts facts = read_event(event);
  const bool only_content = facts.content && !facts.finish && !facts.usage && !facts.error;
  if (only_content && !facts.text.empty() && event.size() - facts.text.size() <= around_max) {
    const auto at = static_cast<std::size_t>(facts.text.data() - event.data());
    before_.assign(event.substr(0, at));
    behind_.assign(event.substr(at + facts.text.size()));
  }
  return facts;
}

AnswerFacts read_answer(std::string_view body) {
  AnswerFacts facts;
  JsonWalk walk(body, 0);
  bool ok = false;
  if (walk.peek() == '{') {
    ok = walk.object([&](const JsonString& key) {
      if (key.is("usage")) return read_usage(walk, facts.usage, facts.tokens);
      if (key.is("error")) return read_error(walk, facts.error, facts.overloaded);
      return walk.value();
    });
  } else {
    ok = walk.value();
  }
  if (!ok || !walk.at_end()) return AnswerFacts{};
  facts.json = true;
  return facts;
}

}  // namespace headgate::wire
