#include "config/event_codec.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "policies/base/random.hpp"

namespace headgate::config {

class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : text_(text) {}
  template <class... T>
  void operator()(T&... fields) {
    (one(fields), ...);
  }
  bool cut() const { return cut_; }
  bool wrong() const { return wrong_; }
  std::size_t bytes() const { return at_; }

  template <class... T>
  void one(std::variant<T...>& field) {
    std::uint8_t place = 0;
    raw(place);
    wrong_ = wrong_ || place >= sizeof...(T);
    if (cut_ || wrong_) return;
    read_place(field, place, std::index_sequence_for<T...>());
  }

 private:
  template <class T>
  void raw(T& value) {
    if (cut_ || wrong_) return;
    if (text_.size() - at_ < sizeof value) {
      cut_ = true;
      return;
    }
    std::memcpy(&value, text_.data() + at_, sizeof value);
    at_ += sizeof value;
  }
  template <class T>
  void one(T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t value = 0;
      raw(value);
      wrong_ = wrong_ || value > 1;
      field = value == 1;
    } else if constexpr (std::is_arithmetic_v<T> || is_id<T>) {
      raw(field);
    } else if constexpr (std::is_enum_v<T>) {
      auto value = static_cast<std::underlying_type_t<T>>(field);
      raw(value);
      wrong_ = wrong_ || value > static_cast<std::underlying_type_t<T>>(last_of(T{}));
      if (!wrong_) field = static_cast<T>(value);
    } else {
      visit(*this, field);
    }
  }
  void one(Nanos& field) {
    Nanos::rep count = 0;
    raw(count);
    // Sums of two must not overflow; the longest there is stands for "no limit".
    constexpr Nanos::rep most = Nanos::rep{1} << 61;
    wrong_ = wrong_ || (count != Nanos::max().count() && (count > most || count < -most));
    field = Nanos(count);
  }
  void one(Time& field) {
    Nanos since{};
    one(since);
    field = Time(since);
  }
  void one(std::string& field) {
    std::uint32_t size = 0;
    raw(size);
    cut_ = cut_ || text_.size() - at_ < size;
    if (cut_ || wrong_) return;
    field.assign(text_, at_, size);
    at_ += size;
  }
  template <class T>
  void one(std::optional<T>& field) {
    bool has = false;
    one(has);
    if (has) one(field.emplace());
  }
  template <class T>
  void one(std::vector<T>& field) {
    std::uint32_t size = 0;
    raw(size);
    for (field.clear(); field.size() < size && !cut_ && !wrong_;) one(field.emplace_back());
  }
  template <class T, std::size_t N>
  void one(std::array<T, N>& field) {
    for (T& element : field) one(element);
  }
  template <class V, std::size_t... I>
  void read_place(V& field, std::size_t place, std::index_sequence<I...>) {
    ((place == I ? one(field.template emplace<I>()) : void()), ...);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool cut_ = false, wrong_ = false;
};

std::uint64_t image_digest(std::string_view image) {
  std::uint64_t digest = image.size();
  while (!image.empty()) {
    std::uint64_t word = 0;
    const std::size_t bytes = std::min(image.size(), sizeof word);
    std::memcpy(&word, image.data(), bytes);
    digest = mix64(digest ^ word);
    image.remove_prefix(bytes);
  }
  return digest;
}

EventLogHead read_event_log_head(std::string_view log) {
  EventLogHead head;
  if (!log.starts_with(event_log_begin)) {
    head.problem = "this is no event log of format 1";
    return head;
  }
  const std::size_t end = std::min(log.find('\n'), log.size());
  const auto first = nlohmann::json::parse(log.substr(0, end), nullptr, false);
  if (end == log.size() || !first.is_object() || !first.contains("build") || !first["build"].is_string()) {
    head.problem = "its first line is broken";
    return head;
  }
  head.build = first["build"].get<std::string>();
  if (!std::ranges::all_of(head.build, [](char c) { return c > ' ' && c < 127; })) {
    head.problem = "its first line is broken";
    return head;
  }
  head.records = log.substr(end + 1);
  return head;
}

EventReader::Read EventReader::next(Event& out) {
  begin_ = at_;
  if (at_ == text_.size()) return Read::end;
  FieldReader reader(text_.substr(at_));
  reader.one(out);
  if (reader.wrong()) return Read::wrong;
  if (reader.cut()) return Read::cut;
  at_ += reader.bytes();
  return Read::event;
}

}  // namespace headgate::config
