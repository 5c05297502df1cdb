#include "support/http_text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>

namespace headgate::support {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

template <class Number>
bool parse_whole(std::string_view text, Number& out, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// The lines of an event stream without their ends.
std::vector<std::string_view> lines_of(std::string_view stream) {
  std::vector<std::string_view> lines;
  while (!stream.empty()) {
    const std::size_t end = stream.find_first_of("\r\n");
    lines.push_back(stream.substr(0, end));
    if (end == std::string_view::npos) break;
    const bool pair = stream.substr(end, 2) == "\r\n";
    stream.remove_prefix(end + (pair ? 2 : 1));
  }
  return lines;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

std::vector<std::string> Head::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : headers)
    if (same_name(key, name)) values.push_back(value);
  return values;
}

std::string Head::get(std::string_view name) const {
  const auto values = all(name);
  return values.empty() ? std::string() : values.front();
}

std::string Head::word(std::size_t n) const {
  std::string_view rest = start_line;
  for (; n > 0 && rest.find(' ') != std::string_view::npos; --n) rest.remove_prefix(rest.find(' ') + 1);
  return n > 0 ? std::string() : std::string(rest.substr(0, rest.find(' ')));
}

int Head::status() const {
  int code = 0;
  const std::string digits = start_line.starts_with("HTTP/1.") ? word(1) : std::string();
  return parse_whole(std::string_view(digits), code, 10) ? code : 0;
}

std::optional<Head> parse_head(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  Head head;
  head.raw = bytes.substr(0, end + 4);
  std::string_view rest = bytes.substr(0, end + 2);
  for (bool first = true; !rest.empty(); first = false) {
    const std::size_t line_end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, line_end);
    rest.remove_prefix(line_end + 2);
    if (first) {
      head.start_line = line;
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    head.headers.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
  }
  return head;
}

Chunked decode_chunks(std::string_view bytes) {
  Chunked out;
  for (;;) {
    const std::string_view rest = bytes.substr(out.used);
    const std::size_t line_end = rest.find("\r\n");
    if (line_end == std::string_view::npos) return out;
    std::size_t size = 0;
    const std::string_view digits = rest.substr(0, std::min(line_end, rest.find(';')));
    if (!parse_whole(digits, size, 16)) {
      out.bad = true;
      return out;
    }
    if (size == 0) {  // trailers, if any, up to an empty line
      const std::size_t trailer = rest.find("\r\n\r\n");
      if (trailer == std::string_view::npos) return out;
      out.used += trailer + 4;
      out.complete = true;
      return out;
    }
    if (rest.size() < line_end + 2 + size + 2) return out;
    if (rest.substr(line_end + 2 + size, 2) != "\r\n") {
      out.bad = true;
      return out;
    }
    out.body += rest.substr(line_end + 2, size);
    out.used += line_end + 2 + size + 2;
  }
}

Time Reply::arrival_of(std::size_t offset) const {
  std::size_t seen = 0;
  for (const Piece& piece : pieces) {
    seen += piece.bytes.size();
    if (offset < seen) return piece.at;
  }
  return Time::max();
}

std::size_t ReplyReader::take(std::string_view bytes, Time at) {
  if (reply_.complete) return 0;
  encoded_ += bytes;
  reply_.raw += bytes;
  if (reply_.status == 0) {
    auto head = parse_head(encoded_);
    if (!head) return bytes.size();
    start_body(std::move(*head), at);
  }
  decode(at);
  const std::size_t surplus = reply_.complete ? encoded_.size() : 0;
  reply_.raw.resize(reply_.raw.size() - surplus);
  return bytes.size() - surplus;
}

void ReplyReader::start_body(Head head, Time at) {
  reply_.head = std::move(head);
  reply_.status = reply_.head.status();
  reply_.bad_framing = reply_.status == 0;
  reply_.head_at = at;
  encoded_.erase(0, reply_.head.raw.size());
  const std::string length = reply_.head.get("content-length");
  const bool empty = reply_.status / 100 == 1 || reply_.status == 204 || reply_.status == 304;
  chunked_ = !empty && same_name(reply_.head.get("transfer-encoding"), "chunked");
  until_close_ = !empty && !chunked_ && !parse_whole(std::string_view(length), length_, 10);
  if (empty) length_ = 0;
}

void ReplyReader::decode(Time at) {
  std::string fresh;
  if (chunked_) {
    Chunked chunks = decode_chunks(encoded_);
    fresh = std::move(chunks.body);
    encoded_.erase(0, chunks.used);
    reply_.complete = chunks.complete;
    reply_.bad_framing = chunks.bad;
  } else {
    const std::size_t wanted = until_close_ ? encoded_.size() : length_ - reply_.body.size();
    fresh = encoded_.substr(0, wanted);
    encoded_.erase(0, fresh.size());
    reply_.complete = !until_close_ && reply_.body.size() + fresh.size() == length_;
  }
  if (reply_.complete) reply_.ended_at = at;
  if (fresh.empty()) return;
  reply_.body += fresh;
  reply_.pieces.push_back({at, std::move(fresh)});
}

void ReplyReader::end(Time at, bool reset) {
  reply_.closed = !reset;
  reply_.reset = reset;
  if (!reply_.complete) reply_.ended_at = at;
  if (until_close_ && !reset) reply_.complete = true;
}

std::vector<std::string> events_of(std::string_view stream) {
  std::vector<std::string> events;
  std::string event;
  for (const std::string_view line : lines_of(stream)) {
    if (!line.empty()) {
      if (!event.empty()) event += '\n';
      event += line;
    } else if (!event.empty()) {
      events.push_back(std::move(event));
      event.clear();
    }
  }
  if (!event.empty()) events.push_back(std::move(event));
  return events;
}

std::vector<std::string> data_of(std::string_view stream) {
  std::vector<std::string> payloads;
  for (const std::string& event : events_of(stream)) {
    std::string payload;
    bool found = false;
    for (std::string_view line : lines_of(event)) {
      if (!line.starts_with("data:")) continue;
      line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
      if (found) payload += '\n';
      payload += line;
      found = true;
    }
    if (found) payloads.push_back(std::move(payload));
  }
  return payloads;
}

std::string last_data_of(std::string_view stream) {
  const auto payloads = data_of(stream);
  return payloads.empty() ? std::string() : payloads.back();
}

std::string content_of(std::string_view stream) {
  std::string text;
  for (const std::string& payload : data_of(stream)) {
    const auto event = nlohmann::json::parse(payload, nullptr, false);
    if (event.is_discarded() || !event.contains("choices")) continue;
    for (const auto& choice : event["choices"])
      if (choice.contains("delta") && choice["delta"].contains("content") && choice["delta"]["content"].is_string())
        text += choice["delta"]["content"].get<std::string>();
  }
  return text;
}

}  // namespace headgate::support
