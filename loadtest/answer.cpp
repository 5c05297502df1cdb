#include "loadtest/answer.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "policies/base/tokens.hpp"

namespace headgate::loadtest {
namespace {

constexpr std::size_t event_bytes_max = 1 << 20, body_bytes_max = 64 << 20, head_bytes_max = 64 << 10;

void read_fields(const wire::ResponseHead& head, Facts& facts, bool& events) {
  for (const wire::Field& field : head.fields) {
    if (wire::equals_ignoring_case(field.name, "x-headgate-refusal")) facts.refusal = field.value;
    if (wire::equals_ignoring_case(field.name, "x-headgate-backend")) facts.backend = field.value;
    if (wire::equals_ignoring_case(field.name, "x-headgate-attempts")) {
      std::from_chars(field.value.data(), field.value.data() + field.value.size(), facts.attempts);
    }
    if (wire::equals_ignoring_case(field.name, "content-type")) events = field.value.starts_with("text/event-stream");
  }
}

const nlohmann::json* find(const nlohmann::json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(name);
  return at == object.end() ? nullptr : &*at;
}

// The text of choices[0] of a chat or a plain completion; words are all that is wanted of it.
std::uint32_t words_of_answer(const nlohmann::json& answer) {
  const nlohmann::json* choices = find(answer, "choices");
  if (choices == nullptr || !choices->is_array() || choices->empty()) return 0;
  const nlohmann::json* message = find(choices->front(), "message");
  const nlohmann::json* text = message ? find(*message, "content") : find(choices->front(), "text");
  return text && text->is_string() ? count_words(text->get_ref<const std::string&>()) : 0;
}

void read_json_body(const std::string& body, Facts& facts) {
  const auto answer = nlohmann::json::parse(body, nullptr, false);
  if (!answer.is_object()) {
    facts.malformed = facts.status == 200;
    return;
  }
  if (const auto* error = find(answer, "error"); error != nullptr && error->is_object()) {
    ++facts.error_events;
    for (const std::string_view name : {"code", "type"}) {
      const auto* code = find(*error, name);
      if (code && code->is_string() && facts.error_code.empty()) facts.error_code = code->get<std::string>();
    }
  }
  if (const auto* usage = find(answer, "usage"); usage != nullptr && usage->is_object()) {
    const auto number = [&](std::string_view name) {
      const auto* value = find(*usage, name);
      return value && value->is_number_unsigned() ? value->get<std::uint32_t>() : 0;
    };
    facts.usage = true;
    facts.tokens = {number("prompt_tokens"), number("completion_tokens"), 0};
  }
  facts.words = words_of_answer(answer);
  const auto* choices = find(answer, "choices");
  if (choices && choices->is_array() && !choices->empty()) {
    const auto* reason = find(choices->front(), "finish_reason");
    facts.finishes = reason && reason->is_string() ? 1 : 0;
  }
}

std::string cause(const Facts& facts, std::string_view transport) {
  if (facts.status != 0 && facts.status != 200) {
    return std::to_string(facts.status) + (facts.error_code.empty() ? "" : " " + facts.error_code);
  }
  if (facts.malformed) return "malformed";
  if (facts.error_events > 0) return "error event";
  return transport.empty() ? "ended without content" : std::string{transport};
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::pending:
      return "pending";
    case Outcome::ok:
      return "ok";
    case Outcome::refused:
      return "refused";
    case Outcome::failed_before_first_token:
      return "failed_before_first_token";
    case Outcome::cut:
      return "cut";
    case Outcome::cut_dirty:
      return "cut_dirty";
    case Outcome::wrong_count:
      return "wrong_count";
    case Outcome::left:
      return "left";
  }
  return "?";
}

Verdict judge(const Facts& facts, const Planned& planned, std::string_view transport, bool check_tokens) {
  if (!facts.refusal.empty()) return {Outcome::refused, facts.refusal};
  const bool whole = facts.complete && !facts.malformed && facts.status == 200 && transport.empty();
  if (planned.stream) {
    const bool finished = whole && facts.dones == 1 && facts.finishes >= 1 && facts.error_events == 0;
    if (!finished) {
      if (facts.content_events == 0) return {Outcome::failed_before_first_token, cause(facts, transport)};
      const bool clean =
          facts.error_events == 1 && facts.error_is_last && facts.dones == 0 && facts.finishes == 0 && !facts.malformed;
      return {clean ? Outcome::cut : Outcome::cut_dirty, cause(facts, transport)};
    }
  } else if (!whole || facts.error_events > 0 || facts.finishes == 0) {
    return {Outcome::failed_before_first_token, cause(facts, transport)};
  }
  if (!check_tokens) return {Outcome::ok, {}};
  const std::uint32_t counted = planned.stream ? facts.content_events : facts.words;
  if (counted == planned.output && facts.usage && facts.tokens.output == counted &&
      facts.tokens.input == planned.input) {
    return {Outcome::ok, {}};
  }
  return {
      Outcome::wrong_count,
      "asked " + std::to_string(planned.input) + "/" + std::to_string(planned.output) + ", counted " +
          std::to_string(counted) + ", reported " +
          (facts.usage ? std::to_string(facts.tokens.input) + "/" + std::to_string(facts.tokens.output) : "nothing")};
}

void AnswerReader::start(bool stream) {
  head_.reset();
  event_end_.reset();
  body_.clear();
  facts_ = {};
  stream_ = stream;
  events_ = in_body_ = done_ = keep_alive_ = false;
}

std::size_t AnswerReader::feed(std::string_view window, Time now) {
  std::size_t used = 0;
  while (!done_ && used < window.size()) {
    std::size_t taken = 0;
    if (!in_body_) {
      taken = read_head(window.substr(used));
    } else {
      const wire::BodyMeter::Piece piece = meter_.next(window.substr(used));
      taken = piece.consumed;
      if (!piece.data.empty()) take_body(piece.data, now);
      if (meter_.bad()) fail();
    }
    if (in_body_ && !done_ && meter_.done()) finish(now);
    if (taken == 0) break;
    used += taken;
  }
  return used;
}

std::size_t AnswerReader::read_head(std::string_view window) {
  wire::ResponseHead head;
  const wire::Read read = head_.response(window, head);
  if (read == wire::Read::bad || (read == wire::Read::incomplete && window.size() > head_bytes_max)) fail();
  if (read != wire::Read::complete) return 0;
  head_.reset();
  if (head.status < 200) return head.bytes;  // an interim answer: the real one follows
  facts_.status = head.status;
  read_fields(head, facts_, events_);
  keep_alive_ = head.keep_alive;
  meter_ = wire::BodyMeter(head.framing, head.content_length);
  in_body_ = true;
  return head.bytes;
}

void AnswerReader::take_body(std::string_view data, Time now) {
  if (!events_) {
    if (body_.size() + data.size() > body_bytes_max) return fail();
    body_ += data;
    return;
  }
  // Only a partial event is copied: whole ones are read where they lie.
  const bool kept = !body_.empty();
  if (kept) body_ += data;
  std::string_view rest = kept ? std::string_view{body_} : data;
  while (const std::size_t length = event_end_.find(rest)) {
    take_event(rest.substr(0, length), now);
    rest.remove_prefix(length);
  }
  if (rest.size() > event_bytes_max) return fail();
  if (kept) {
    body_.erase(0, body_.size() - rest.size());
  } else {
    body_ = rest;
  }
}

void AnswerReader::take_event(std::string_view event, Time now) {
  const wire::EventFacts said = wire::read_event(event);
  if (said.comment_only) return;
  if (facts_.error_events > 0) facts_.error_is_last = false;
  if (said.malformed) facts_.malformed = true;
  if (said.done) ++facts_.dones;
  if (said.finish) ++facts_.finishes;
  if (said.error) ++facts_.error_events;
  if (said.usage) {
    facts_.usage = true;
    facts_.tokens = said.tokens;
  }
  if (!said.content) return;
  if (facts_.content_events++ == 0) {
    facts_.first_content = now;
  } else {
    facts_.gap_max = std::max(facts_.gap_max, now - facts_.last_content);
    if (itl_ != nullptr) itl_->record(now - facts_.last_content);
  }
  facts_.last_content = now;
}

void AnswerReader::finish(Time) {
  done_ = facts_.complete = true;
  if (events_ && !body_.empty()) facts_.malformed = true;  // half an event at a clean end
  if (!events_) {
    read_json_body(body_, facts_);
    if (stream_ && facts_.status == 200) facts_.malformed = true;  // asked for events
  }
}

void AnswerReader::fail() {
  facts_.malformed = done_ = true;
  facts_.complete = false;
}

void AnswerReader::end_of_input(Time now) {
  if (done_) return;
  if (in_body_ && meter_.ends_at_eof()) return finish(now);
  done_ = true;
}

}  // namespace headgate::loadtest
