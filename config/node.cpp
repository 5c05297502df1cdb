#include "config/node.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headgate::config {
namespace {

constexpr std::size_t shown_bytes_max = 80;

bool plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 256 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '$';
  });
}

}  // namespace

std::string in_quotes(std::string_view text) {
  const bool cut = text.size() > shown_bytes_max;
  const auto replace = nlohmann::json::error_handler_t::replace;
  std::string out = nlohmann::json(std::string(text.substr(0, shown_bytes_max))).dump(-1, ' ', false, replace);
  return cut ? out + "..." : out;
}

std::string shown(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::boolean:
      return node.truth ? "true" : "false";
    case Node::Kind::number:
      return node.text.size() > shown_bytes_max ? "a very long number" : node.text;
    case Node::Kind::text:
      return in_quotes(node.text);
    case Node::Kind::list:
      return "a list";
    case Node::Kind::object:
      return "an object";
  }
  return {};
}

const Node* Node::find(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(), [name](const Member& m) { return m.name == name; });
  return found == members.end() ? nullptr : &found->value;
}

std::string member_path(const std::string& path, std::string_view name) {
  return path + (plain_name(name) ? "." + std::string(name) : "[" + in_quotes(name) + "]");
}

Place Place::member(std::string_view name) const {
  Place out;
  out.path = member_path(path, name);
  out.node = node == nullptr ? nullptr : node->find(name);
  out.line = out.node == nullptr ? line : out.node->line;
  return out;
}

Place Place::item(std::size_t position) const {
  Place out;
  out.path = path + "[" + std::to_string(position) + "]";
  out.node = node == nullptr || position >= node->items.size() ? nullptr : &node->items[position];
  out.line = out.node == nullptr ? line : out.node->line;
  return out;
}

}  // namespace headgate::config
