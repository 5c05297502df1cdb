// The SAX reader over a line-counting iterator behind read_tree().
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "config/json_text.hpp"
#include "config/node.hpp"

namespace headgate::config {
namespace {

constexpr std::size_t depth_max = 32;
constexpr std::size_t values_max = 200'000;  // a tree of them stays under 50 MB

// Advanced by the parser; `line` is that of the last character read, which a line end still belongs to.
struct Cursor {
  unsigned line = 1;
  bool line_ended = false;
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Cursor& cursor) : at_(at), cursor_(&cursor) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (cursor_->line_ended) ++cursor_->line;
    cursor_->line_ended = *at_ == '\n';
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  Cursor* cursor_;
};

// The parser's own words without its prefix and without what it read last: that may be a secret.
std::string syntax_message(std::string text) {
  if (const auto prefix = text.find("] "); prefix != std::string::npos) text.erase(0, prefix + 2);
  if (const auto column = text.find("column "); text.rfind("parse error at line ", 0) == 0) {
    if (const auto colon = text.find(": ", column); colon != std::string::npos) text.erase(0, colon + 2);
  }
  text.resize(std::min(text.size(), text.find("; last read: '")));
  return text.rfind("syntax error", 0) == 0 ? text : "syntax error: " + text;
}

class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(const Cursor& cursor, Problems& problems) : cursor_(cursor), problems_(problems) {}

  Node take() { return std::move(root_); }

  bool null() override { return add(Node::Kind::null) != nullptr; }
  bool boolean(bool value) override {
    Node* node = add(Node::Kind::boolean);
    if (node != nullptr) node->truth = value;
    return node != nullptr;
  }
  bool number_integer(number_integer_t value) override { return add(Node::Kind::number, std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(Node::Kind::number, std::to_string(value)); }
  bool number_float(number_float_t, const string_t& written) override { return add(Node::Kind::number, written); }
  bool string(string_t& value) override { return add(Node::Kind::text, std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    names_.emplace_back();
    return open(Node::Kind::object);
  }
  bool key(string_t& name) override {
    const auto [first, fresh] = names_.back().emplace(name, cursor_.line);
    if (!fresh) {
      problems_.add(cursor_.line, path_of(name),
                    "duplicate key: first written on line " + std::to_string(first->second));
    }
    open_.back()->members.push_back({std::move(name), cursor_.line, {}});
    return true;
  }
  bool end_object() override {
    names_.pop_back();
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return open(Node::Kind::list); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    problems_.add(cursor_.line, {}, syntax_message(error.what()));
    return false;
  }

 private:
  Node* add(Node::Kind kind) {
    if (++values_ > values_max) {
      problems_.add(cursor_.line, {}, "the file holds more than " + std::to_string(values_max) + " values");
      return nullptr;
    }
    Node* node = &root_;
    if (!open_.empty()) {
      Node& parent = *open_.back();
      node = parent.kind == Node::Kind::object ? &parent.members.back().value : &parent.items.emplace_back();
    }
    node->kind = kind;
    node->line = cursor_.line;
    return node;
  }

  bool add(Node::Kind kind, std::string text) {
    Node* node = add(kind);
    if (node != nullptr) node->text = std::move(text);
    return node != nullptr;
  }

  bool open(Node::Kind kind) {
    if (open_.size() == depth_max) {
      problems_.add(cursor_.line, {}, "nested deeper than " + std::to_string(depth_max) + " levels");
      return false;
    }
    Node* node = add(kind);
    if (node != nullptr) open_.push_back(node);
    return node != nullptr;
  }

  // The path of a member of the innermost open object; what is open is always the newest child of its parent.
  std::string path_of(const std::string& name) const {
    Place place{&root_, "$", 1};
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const Node& parent = *open_[i];
      place = parent.kind == Node::Kind::object ? place.member(parent.members.back().name)
                                                : place.item(parent.items.size() - 1);
    }
    return place.member(name).path;
  }

  const Cursor& cursor_;
  Problems& problems_;
  Node root_;
  std::vector<Node*> open_;
  std::vector<std::unordered_map<std::string, unsigned>> names_;
  std::size_t values_ = 0;
};

}  // namespace

std::optional<Node> read_tree(std::string_view text, Problems& problems) {
  const auto plain = plain_json(text, problems);
  if (!plain) return std::nullopt;
  Cursor cursor;
  TreeBuilder builder(cursor, problems);
  const char* begin = plain->data();
  const CountingIterator first(begin, cursor), last(begin + plain->size(), cursor);
  if (!nlohmann::json::sax_parse(first, last, &builder)) return std::nullopt;
  return builder.take();
}

}  // namespace headgate::config
