// A configuration file as a tree in which every value knows its line: what the SAX reader builds and the typed reader
// walks. Members keep their order and their duplicates. Place is a cursor: a node with its JSON path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.hpp"

namespace headgate::config {

struct Member;

struct Node {
  enum class Kind : std::uint8_t { null, boolean, number, text, list, object };

  Kind kind = Kind::null;
  unsigned line = 0;
  bool truth = false;
  std::string text;             // of a number: as written, so that 16.0 is told from 16 and nothing overflows
  std::vector<Node> items;      // of a list
  std::vector<Member> members;  // of an object
  mutable bool faulty = false;  // a problem was reported for this value: rules that span fields leave it out

  const Node* find(std::string_view name) const;  // the first of that name
};

struct Member {
  std::string name;
  unsigned line = 0;
  Node value;
};

// For messages: a scalar as it stands in the file, shortened; "an object", "a list".
std::string shown(const Node& node);
std::string in_quotes(std::string_view text);  // as a JSON string, shortened

std::string member_path(const std::string& path, std::string_view name);  // $.a.b, or $["a name"] where needed

struct Place {
  const Node* node = nullptr;  // null: not written in the file
  std::string path = "$";
  unsigned line = 1;  // of the nearest node that is written

  Place member(std::string_view name) const;
  Place item(std::size_t position) const;
  bool written() const { return node != nullptr; }
  bool faulty() const { return node != nullptr && node->faulty; }
};

// Reports syntax errors and duplicate keys; the tree is there when the syntax is right.
std::optional<Node> read_tree(std::string_view text, Problems& problems);

}  // namespace headgate::config
