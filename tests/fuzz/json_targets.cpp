#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/wire/json_skim.hpp"
#include "backends/wire/splice.hpp"
#include "backends/wire/sse_scan.hpp"
#include "fuzz/targets.hpp"

namespace headgate::fuzz {
namespace {

using namespace wire;
using Json = nlohmann::json;

// nlohmann refuses numbers too large for a double, which are numbers to everyone else.
bool may_overflow(std::string_view text) {
  for (std::size_t at = text.find_first_of("eE"); at != std::string_view::npos; at = text.find_first_of("eE", at + 1)) {
    std::size_t digits = at + 1;
    if (digits < text.size() && text[digits] == '+') ++digits;
    if (digits + 2 < text.size() && text[digits] >= '0' && text[digits] <= '9') return true;
  }
  return text.size() > 300;
}

// Half of a surrogate pair, escaped, passes here on purpose.
bool may_be_half_a_pair(std::string_view text) {
  for (std::size_t at = text.find("\\u"); at != std::string_view::npos; at = text.find("\\u", at + 1)) {
    if (text.substr(at + 2, 1) == "d" || text.substr(at + 2, 1) == "D") return true;
  }
  return false;
}

// nlohmann passes over a byte order mark and ends at a NUL.
bool marked(std::string_view bytes) {
  return bytes.starts_with("\xef\xbb\xbf") || bytes.find('\0') != std::string_view::npos;
}

std::string padded(std::string_view bytes) { return std::string(bytes).append(json_padding, '\0'); }

Skimmer& skimmer() {
  static Skimmer one;
  return one;
}

}  // namespace

void skim(std::string_view bytes) {
  const std::string text = padded(bytes);
  Skim found;
  const std::string_view whole = std::string_view(text).substr(0, bytes.size());
  const SkimError error = skimmer().skim(whole, found);
  const std::string_view leading = leading_model(whole);
  check(error != SkimError::none || leading.empty() || leading == found.model, "the leading model is another");
  if (error == SkimError::depth || marked(bytes)) return;
  const bool valid = error != SkimError::syntax && error != SkimError::utf8;
  const bool theirs = Json::accept(bytes.begin(), bytes.end());
  check(!theirs || valid, "a body is refused that nlohmann accepts");
  check(theirs || !valid || may_overflow(bytes) || may_be_half_a_pair(bytes), "a body passes that nlohmann refuses");
  if (error != SkimError::none || !theirs || found.model.size() > name_bytes_max) return;
  const Json body = Json::parse(bytes.begin(), bytes.end());
  const std::string model = body.at("model").get<std::string>();
  check(model == found.model || model.find("\\u") != std::string::npos || bytes.find("\\u") != std::string_view::npos,
        "another model than nlohmann's");
  check(found.stream == (body.contains("stream") && body["stream"].is_boolean() && body["stream"].get<bool>()),
        "another stream than nlohmann's");
}

void splice(std::string_view bytes) {
  const std::string text = padded(bytes);
  const std::string_view body = std::string_view(text).substr(0, bytes.size());
  Skim found;
  if (skimmer().skim(body, found) != SkimError::none || !Json::accept(body.begin(), body.end())) return;
  Splice edits;
  set_model(edits, found, "new \"name\"");
  ask_for_usage(edits, found);
  std::string edited;
  for (const std::string_view piece : edits.pieces(body)) edited.append(piece);
  check(edited.size() == edits.size(body), "the edited size is wrong");
  check(Json::accept(edited), "an edited body is no JSON");
  Json expected = Json::parse(body.begin(), body.end()), got = Json::parse(edited);
  expected["model"] = "new \"name\"";
  if (expected.contains("stream_options") && expected["stream_options"].is_null()) expected.erase("stream_options");
  expected["stream_options"]["include_usage"] = true;
  check(got == expected, "an edited body says something else");
}

void sse(std::string_view bytes) {
  // Where events end does not depend on where reads do.
  std::vector<std::string_view> events;
  EventEnd whole;
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::size_t size = whole.find(rest);
    if (size == 0) break;
    check(size <= rest.size(), "an event is longer than its bytes");
    events.push_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  EventReader reader;
  for (const std::string_view event : events) {
    const EventFacts facts = reader.read(event), slow = read_event(event);
    check(facts.content == slow.content && facts.finish == slow.finish && facts.done == slow.done &&
              facts.error == slow.error && facts.usage == slow.usage && facts.comment_only == slow.comment_only &&
              facts.malformed == slow.malformed && facts.usage_only == slow.usage_only,
          "an event read beside the one before says something else");
    EventEnd grown;
    std::size_t size = 0;
    for (std::size_t n = 1; n <= event.size() && size == 0; ++n) size = grown.find(event.substr(0, n));
    // a CR that ends an event is not kept waiting for its LF
    check(size == event.size() || (size + 1 == event.size() && event.ends_with("\r\n")),
          "an event that grows ends elsewhere");
  }
  const AnswerFacts answer = read_answer(bytes);
  std::size_t depth = 0, deepest = 0;
  for (const char c : bytes) {
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  if (deepest > json_depth_max || marked(bytes)) return;
  const bool theirs = Json::accept(bytes.begin(), bytes.end());
  check(!theirs || answer.json, "an answer is refused that nlohmann accepts");
}

}  // namespace headgate::fuzz
