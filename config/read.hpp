// The one recursive reader: walks a tree of nodes and the field descriptions side by side, fills the struct and reports
// everything that does not fit. A value that is wrong keeps its default and marks its node as faulty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/environment.hpp"
#include "config/field.hpp"
#include "config/load.hpp"
#include "config/node.hpp"
#include "config/options.hpp"
#include "policies/base/nearest.hpp"

namespace headgate::config {

class Reader {
 public:
  Reader(const Environment& environment, Problems& problems) : environment_(environment), problems_(problems) {}

  template <Described T>
  void object(const Place& at, T& out) {
    if (!is_kind(at, Node::Kind::object, "an object {...}")) return;
    std::vector<std::string> names;
    each_field<T>([&](const auto& field) { names.emplace_back(field.name); });
    unknown_members(at, names);
    each_field<T>([&](const auto& field) {
      const Place member = at.member(field.name);
      if (member.written()) {
        value(member, out.*field.member, field.rule);
      } else if (field.needed) {
        missing(member, field.doc);
      }
    });
  }

  void fault(const Place& at, std::string message);

 private:
  template <class T, class Rule>
  void value(const Place& at, T& out, const Rule& rule) {
    if constexpr (Optional<T>) {
      typename T::value_type inner{};
      value(at, inner, rule);
      if (!at.faulty()) out = std::move(inner);
    } else if constexpr (Vector<T>) {
      list(at, out, rule);
    } else if constexpr (Map<T>) {
      map(at, out, rule);
    } else if constexpr (Described<T>) {
      object(at, out);
    } else if constexpr (NamedEnum<T>) {
      enumerated(at, out);
    } else {
      scalar(at, out, rule);
    }
  }

  template <class T, class Each>
  void list(const Place& at, std::vector<T>& out, const List<Each>& rule) {
    if (!is_kind(at, Node::Kind::list, "a list [...]")) return;
    out.clear();
    if (!is_count(at, at.node->items.size(), rule.low, rule.high, "items")) return;
    for (std::size_t i = 0; i < at.node->items.size(); ++i) value(at.item(i), out.emplace_back(), rule.each);
  }

  template <class T>
  void map(const Place& at, std::map<std::string, T>& out, const Named& rule) {
    if (!is_kind(at, Node::Kind::object, "an object {...}")) return;
    out.clear();
    if (!is_count(at, at.node->members.size(), rule.low, rule.high, "entries")) return;
    for (const Member& member : at.node->members) {
      const auto [entry, fresh] = out.try_emplace(member.name);
      if (!fresh) continue;  // reported as a duplicate key
      const Place place = at.member(member.name);
      if (const auto problem = rule.name.problem(member.name); !problem.empty()) {
        fault(place, "the name " + in_quotes(member.name) + " " + problem);
      }
      value(place, entry->second, Any{});
    }
  }

  template <NamedEnum E>
  void enumerated(const Place& at, E& out) {
    if (const auto chosen = choice(at, enum_names<E>())) out = EnumNames<E>::all[*chosen].first;
  }

  template <std::size_t N>
  void scalar(const Place& at, std::string& out, const OneOf<N>& rule) {
    const std::vector<std::string> names(rule.names.begin(), rule.names.end());
    if (const auto chosen = choice(at, names)) out = names[*chosen];
  }

  void scalar(const Place& at, bool& out, const Any&);
  void scalar(const Place& at, std::uint32_t& out, const Range<std::uint32_t>& rule);
  void scalar(const Place& at, std::uint64_t& out, const Range<std::uint64_t>& rule);
  void scalar(const Place& at, std::uint64_t& out, const Range<Bytes>& rule);
  void scalar(const Place& at, double& out, const Range<double>& rule);
  void scalar(const Place& at, Bytes& out, const Range<Bytes>& rule);
  void scalar(const Place& at, Nanos& out, const Range<Nanos>& rule);
  void scalar(const Place& at, std::string& out, const Text& rule);
  void scalar(const Place& at, Secret& out, const Text& rule);

  bool is_kind(const Place& at, Node::Kind kind, const char* right);
  bool is_count(const Place& at, std::size_t count, std::size_t low, std::size_t high, const char* what);
  void unknown_members(const Place& at, const std::vector<std::string>& names);
  void missing(const Place& at, const char* doc);
  std::optional<std::uint64_t> whole(const Place& at, std::uint64_t low, std::uint64_t high);
  std::optional<std::string> text(const Place& at, const std::string& right, bool secret);
  std::optional<std::size_t> choice(const Place& at, const std::vector<std::string>& names);

  const Environment& environment_;
  Problems& problems_;
};

std::string shown_range(const Range<Nanos>& range);
std::string shown_range(const Range<Bytes>& range);
std::string shown_range(const Range<double>& range);
std::string shown_number(double value);

}  // namespace headgate::config
