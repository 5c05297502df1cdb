#include "config/set_field.hpp"

#include <charconv>
#include <span>

#include "config/describe_pools.hpp"
#include "config/field.hpp"
#include "policies/base/nearest.hpp"

namespace headgate::config {
namespace {

struct Step {
  std::string name;                 // of a member
  std::optional<std::size_t> item;  // of a list
};

// Nothing where the path is not of the form.
std::optional<std::vector<Step>> steps_of(std::string_view path) {
  std::vector<Step> steps;
  bool after_dot = true;
  if (path.starts_with('$')) {
    path.remove_prefix(1);
    after_dot = path.starts_with('.');
    if (after_dot) path.remove_prefix(1);
  }
  while (!path.empty()) {
    if (after_dot) {
      const std::size_t end = std::min(path.find_first_of(".["), path.size());
      if (end == 0) return std::nullopt;
      steps.push_back({std::string(path.substr(0, end)), std::nullopt});
      path.remove_prefix(end);
    } else if (path.starts_with("[\"")) {
      const std::size_t end = path.find("\"]");
      if (end < 3 || end == path.npos) return std::nullopt;
      steps.push_back({std::string(path.substr(2, end - 2)), std::nullopt});
      path.remove_prefix(end + 2);
    } else {
      std::size_t item = 0;
      const auto [end, error] = std::from_chars(path.data() + 1, path.data() + path.size(), item);
      if (error != std::errc() || end == path.data() + path.size() || *end != ']') return std::nullopt;
      steps.push_back({{}, item});
      path.remove_prefix(static_cast<std::size_t>(end + 1 - path.data()));
    }
    after_dot = path.starts_with('.');
    if (after_dot) path.remove_prefix(1);
    if (after_dot ? path.empty() : !path.empty() && path.front() != '[') return std::nullopt;
  }
  if (steps.empty()) return std::nullopt;
  return steps;
}

// At the first "=" that is not inside of a quoted name.
std::size_t end_of_path(std::string_view set) {
  bool quoted = false;
  for (std::size_t at = 0; at < set.size(); ++at) {
    if (set[at] == '"') quoted = !quoted;
    if (set[at] == '=' && !quoted) return at;
  }
  return set.npos;
}

void forget_lines(Node& node) {
  node.line = 0;
  for (Node& item : node.items) forget_lines(item);
  for (Member& member : node.members) {
    member.line = 0;
    forget_lines(member.value);
  }
}

Node value_of(std::string_view text) {
  Problems not_json;
  std::optional<Node> tree = read_tree(text, not_json);
  if (!tree || !not_json.empty()) {
    tree.emplace().kind = Node::Kind::text;
    tree->text = text;
  }
  forget_lines(*tree);
  return std::move(*tree);
}

// Follows the path through tree and field descriptions side by side.
class Walk {
 public:
  Walk(std::string_view value, Problems& problems) : value_(value), problems_(problems) {}

  template <Described T>
  void object(Node& node, std::span<const Step> steps, const std::string& path) {
    if (!enters(node, Node::Kind::object, steps.front(), path)) return;
    std::vector<std::string> names;
    bool found = false;
    each_field<T>([&](const auto& field) {
      names.emplace_back(field.name);
      if (steps.front().name != field.name) return;
      found = true;
      using Type = typename std::remove_cvref_t<decltype(field)>::Type;
      value<Type>(member(node, field.name), steps.subspan(1), member_path(path, field.name));
    });
    if (!found) unknown(path, "field", steps.front().name, names);
  }

 private:
  template <class T>
  void value(Node& node, std::span<const Step> steps, const std::string& path) {
    if constexpr (Optional<T>) {
      value<typename T::value_type>(node, steps, path);
    } else if (steps.empty()) {
      node = value_of(value_);
    } else if constexpr (Described<T>) {
      object<T>(node, steps, path);
    } else if constexpr (Map<T>) {
      if (!enters(node, Node::Kind::object, steps.front(), path)) return;
      std::vector<std::string> names;
      for (Member& entry : node.members) {
        if (entry.name == steps.front().name)
          return value<typename T::mapped_type>(entry.value, steps.subspan(1), member_path(path, entry.name));
        names.push_back(entry.name);
      }
      unknown(path, "entry", steps.front().name, names);
    } else if constexpr (Vector<T>) {
      if (!enters(node, Node::Kind::list, steps.front(), path)) return;
      const std::size_t item = *steps.front().item;
      if (item >= node.items.size()) return no_such_item(path, item, node.items.size());
      value<typename T::value_type>(node.items[item], steps.subspan(1), path + "[" + std::to_string(item) + "]");
    } else {
      problem(path, "is a single value: nothing can stand behind it");
    }
  }

  // The file's own kind must be right; what the file leaves out takes the kind that is asked for.
  bool enters(Node& node, Node::Kind kind, const Step& step, const std::string& path) {
    const bool by_item = step.item.has_value(), list = kind == Node::Kind::list;
    if (node.kind == Node::Kind::null) node.kind = kind;
    if (node.kind == kind && by_item == list) return true;
    problem(path, list ? "is a list: [0] is its first item" : "is an object: a name must follow");
    return false;
  }

  static Node& member(Node& node, std::string_view name) {
    for (Member& one : node.members) {
      if (one.name == name) return one.value;
    }
    return node.members.emplace_back(Member{std::string(name), 0, {}}).value;
  }

  void no_such_item(const std::string& path, std::size_t item, std::size_t items) {
    const std::string there = items == 0   ? "the file has no items there"
                              : items == 1 ? "there is only [0]"
                                           : "there are [0] to [" + std::to_string(items - 1) + "]";
    problem(path, "has no item [" + std::to_string(item) + "]; " + there);
  }
  void unknown(const std::string& path, const char* what, const std::string& name,
               const std::vector<std::string>& known) {
    problem(path, std::string("has no ") + what + " " + in_quotes(name) + suggestion(name, known));
  }
  void problem(const std::string& path, std::string message) { problems_.add(0, path, std::move(message)); }

  std::string_view value_;
  Problems& problems_;
};

}  // namespace

void set_field(Node& root, std::string_view set, Problems& problems) {
  const std::size_t split = end_of_path(set);
  const auto steps = split == set.npos ? std::nullopt : steps_of(set.substr(0, split));
  if (!steps) {
    problems.add(0, {}, in_quotes(set) + " must be PATH=VALUE, such as pools.small.queue.requests_max=4");
    return;
  }
  Walk(set.substr(split + 1), problems).object<Options>(root, *steps, "$");
}

}  // namespace headgate::config
