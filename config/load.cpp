#include "config/load.hpp"

#include <algorithm>

#include "backends/text_file.hpp"
#include "config/catalog.hpp"
#include "config/describe_pools.hpp"
#include "config/read.hpp"
#include "config/set_field.hpp"
#include "config/validate.hpp"

namespace headgate::config {
namespace {

// "$schema" at the root tells an editor where the schema is; it is no option.
void take_schema_field(Node& root, Problems& problems) {
  const auto found = std::find_if(root.members.begin(), root.members.end(),
                                  [](const Member& member) { return member.name == "$schema"; });
  if (found == root.members.end()) return;
  if (found->value.kind != Node::Kind::text) {
    problems.add(found->line, "$.$schema", "is " + shown(found->value) + ", must be text: the address of a schema");
  }
  root.members.erase(found);
}

std::vector<Problem> named_by_source(std::vector<Problem> problems) {
  for (Problem& problem : problems) {
    if (problem.line == 0) problem.message += " (--set)";
  }
  return problems;
}

Loaded not_read(std::string why) { return {std::nullopt, {{0, {}, std::move(why)}}}; }

}  // namespace

Loaded load_text(std::string_view text, const Environment& environment, const std::vector<std::string>& sets) {
  if (text.size() > file_bytes_max) {
    return not_read("has " + std::to_string(text.size()) + " bytes, must be at most 8 MiB");
  }
  Problems problems;
  auto tree = read_tree(text, problems);
  if (!tree) return {std::nullopt, problems.take()};
  if (tree->kind == Node::Kind::object) take_schema_field(*tree, problems);
  for (const std::string& set : sets) set_field(*tree, set, problems);
  if (!sets.empty() && !problems.empty()) return {std::nullopt, named_by_source(problems.take())};
  const Place root{&*tree, "$", tree->line};
  Options options;
  Reader(environment, problems).object(root, options);
  name_backends(options);
  if (!root.faulty()) validate(options, root, problems);
  if (!problems.empty()) return {std::nullopt, named_by_source(problems.take())};
  return {std::move(options), {}};
}

Loaded load_file(const std::string& path, const std::vector<std::string>& sets) {
  std::string problem;
  const auto text = backends::read_text_file(path, file_bytes_max, problem);
  if (!text) return not_read(std::move(problem));
  return load_text(*text, process_environment(), sets);
}

}  // namespace headgate::config
