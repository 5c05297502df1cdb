// One description per field: its name, member, one-line doc and what its value may be. Describe<T>::fields() is a tuple
// of these for every struct of the file; the reader, the JSON Schema, the reference and the redacted print all walk it.
// The default is the member's initialiser and stands nowhere else.
//
//   template <> struct Describe<ProbeOptions> {
//     static constexpr auto fields() {
//       return std::tuple{field("fall", &ProbeOptions::fall, "Missed probes in a row that mean down.",
//                               Range<std::uint32_t>{1, 100}), ...};
//     }
//   };
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace headgate::config {

// What a value may be.
struct Any {};

template <class T>
struct Range {  // both ends allowed; Range<Bytes> on a plain integer makes it a size with a unit
  T low, high;
};

struct Text {
  const char* form;                               // for the reference: "address:port"
  const char* pattern;                            // for the schema, as ECMA 262 writes them; not anchored to ${ENV}
  std::string (*problem)(std::string_view text);  // empty when good, else the rest of `is "TEXT", `
  bool hidden = false;                            // problems tell the length of the text, never the text
};

template <std::size_t N>
struct OneOf {
  std::array<const char*, N> names;
};
template <class... Names>
OneOf(Names...) -> OneOf<sizeof...(Names)>;

template <class Each>
struct List {
  std::size_t low, high;
  Each each;
};

struct Named {  // an object whose names the user chooses
  std::size_t low, high;
  Text name;
  const char* stands_for;  // NAME in paths of the reference
};

template <class Owner, class Member, class Rule>
struct Field {
  using Type = Member;

  const char* name;
  Member Owner::*member;
  const char* doc;
  Rule rule;
  bool needed = false;
  const char* absent = nullptr;  // of an optional: what holds when it is left out
};

template <class Owner, class Member, class Rule = Any>
constexpr auto field(const char* name, Member Owner::*member, const char* doc, Rule rule = {}) {
  return Field<Owner, Member, Rule>{name, member, doc, rule};
}

template <class F>
constexpr F required(F described) {
  described.needed = true;
  return described;
}

template <class F>
constexpr F absent_means(const char* text, F described) {
  described.absent = text;
  return described;
}

template <class T>
struct Describe;  // static constexpr auto fields(), for structs

template <class E>
struct EnumNames;  // static constexpr std::array<std::pair<E, const char*>, N> all, for enums

template <class T>
concept Described = requires {
  Describe<T>::fields();
};

template <class T>
concept NamedEnum = std::is_enum_v<T> && requires {
  EnumNames<T>::all;
};

template <NamedEnum E>
std::vector<std::string> enum_names() {
  std::vector<std::string> names;
  names.reserve(EnumNames<E>::all.size());
  for (const auto& [value, name] : EnumNames<E>::all) names.emplace_back(name);
  return names;
}

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
concept Optional = is_optional<T>::value;

template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
concept Vector = is_vector<T>::value;

template <class T>
struct is_map : std::false_type {};
template <class T>
struct is_map<std::map<std::string, T>> : std::true_type {};
template <class T>
concept Map = is_map<T>::value;

// Calls visit(field) for each field of T, in the order described.
template <Described T, class Visit>
constexpr void each_field(Visit&& visit) {
  std::apply([&](const auto&... described) { (visit(described), ...); }, Describe<T>::fields());
}

template <class E>
const char* name_of(E value) {
  for (const auto& [known, name] : EnumNames<E>::all) {
    if (known == value) return name;
  }
  return "?";
}

}  // namespace headgate::config
