// The JSON Schema printer. Rules between fields (unique names, dangling names) are beyond a schema; `headgate check`
// has them all.
#include "config/describe_pools.hpp"
#include "config/load.hpp"
#include "config/read.hpp"
#include "config/values.hpp"

namespace headgate::config {
namespace {

constexpr const char* has_variable = "\\$\\{";  // what ${ENV} will be can't be checked by an editor
constexpr const char* duration_pattern = "^[0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h)$";
constexpr const char* size_pattern = "^[0-9]+(\\.[0-9]+)?(B|[KMGT]B|[KMGT]iB)$";

template <class T, class Rule>
Json schema_of(const Rule& rule);

Json text_schema(const char* pattern) {
  Json schema{{"type", "string"}};
  schema["anyOf"] = Json::array({Json{{"pattern", pattern}}, Json{{"pattern", has_variable}}});
  return schema;
}

template <class Names>
Json choice_schema(const Names& names) {
  Json schema{{"type", "string"}};
  schema["anyOf"] = Json::array({Json{{"enum", names}}, Json{{"pattern", has_variable}}});
  return schema;
}

template <class T, class Rule>
Json scalar_schema(const Rule& rule) {
  if constexpr (std::is_same_v<Rule, Range<Bytes>>) {
    return text_schema(size_pattern);
  } else if constexpr (std::is_same_v<T, Nanos>) {
    return text_schema(duration_pattern);
  } else if constexpr (std::is_same_v<Rule, Text>) {
    return text_schema(rule.pattern);
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_same_v<T, double>) {
    return {{"type", "number"}, {"minimum", rule.low}, {"maximum", rule.high}};
  } else if constexpr (std::is_integral_v<T>) {
    return {{"type", "integer"}, {"minimum", rule.low}, {"maximum", rule.high}};
  } else {
    return choice_schema(rule.names);
  }
}

template <class F, class Owner>
void add_field(Json& schema, const F& field, const Owner& defaults) {
  using Member = typename F::Type;
  Json described = schema_of<Member>(field.rule);
  std::string doc = field.doc;
  if constexpr (std::is_same_v<decltype(field.rule), Range<Nanos>> ||
                std::is_same_v<decltype(field.rule), Range<Bytes>>) {
    doc += " " + shown_range(field.rule) + ".";
  }
  if (field.absent != nullptr) doc += std::string(" Default: ") + field.absent + ".";
  described["description"] = doc;
  const auto& value = defaults.*field.member;
  if constexpr (!Described<Member>) {
    if (!field.needed && !is_unset(value)) described["default"] = json_of(value, field.rule);
  }
  schema["properties"][field.name] = std::move(described);
  if (field.needed) schema["required"].push_back(field.name);
}

template <Described T>
Json object_schema() {
  Json schema{{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  const T defaults{};
  each_field<T>([&](const auto& field) { add_field(schema, field, defaults); });
  return schema;
}

template <class T, class Rule>
Json schema_of(const Rule& rule) {
  if constexpr (Optional<T>) {
    return schema_of<typename T::value_type>(rule);
  } else if constexpr (Vector<T>) {
    Json items = schema_of<typename T::value_type>(rule.each);
    return {{"type", "array"}, {"minItems", rule.low}, {"maxItems", rule.high}, {"items", std::move(items)}};
  } else if constexpr (Map<T>) {
    return {{"type", "object"},
            {"minProperties", rule.low},
            {"maxProperties", rule.high},
            {"propertyNames", Json{{"pattern", rule.name.pattern}}},
            {"additionalProperties", schema_of<typename T::mapped_type>(Any{})}};
  } else if constexpr (Described<T>) {
    return object_schema<T>();
  } else if constexpr (NamedEnum<T>) {
    return choice_schema(enum_names<T>());
  } else {
    return scalar_schema<T>(rule);
  }
}

}  // namespace

std::string schema() {
  Json root{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "Headgate configuration"}};
  root.update(object_schema<Options>());
  root["properties"]["$schema"] = Json{{"type", "string"}, {"description", "Where an editor finds this schema."}};
  return root.dump(2) + "\n";
}

}  // namespace headgate::config
