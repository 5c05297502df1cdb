// The printed schema is applied to files by the small validator below, which knows the keywords the printer uses and
// fails on any other.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "config/describe_pools.hpp"
#include "config/json_text.hpp"
#include "config_text.hpp"

namespace headgate::config {
namespace {

using Json = nlohmann::json;

class SchemaCheck {
 public:
  // Empty when `value` fits, else where it doesn't.
  std::string run(const Json& schema, const Json& value, const std::string& path) {
    for (const auto& [keyword, argument] : schema.items()) {
      if (!holds(schema, keyword, argument, value)) return path + ": " + keyword;
      if (const std::string inner = inside(keyword, argument, value, path); !inner.empty()) return inner;
    }
    return {};
  }

 private:
  static bool is_type(const std::string& type, const Json& value) {
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "boolean" ? value.is_boolean()
           : type == "integer" ? value.is_number_integer()
           : type == "number"  ? value.is_number()
                               : false;
  }

  bool holds(const Json& schema, const std::string& keyword, const Json& argument, const Json& value) {
    static const std::set<std::string> without_effect{"$schema",    "title", "description",  "default",
                                                      "properties", "items", "propertyNames"};
    if (without_effect.count(keyword) != 0) return true;
    // the other keywords speak only about values of their type
    if (keyword == "pattern" && !value.is_string()) return true;
    if ((keyword == "minimum" || keyword == "maximum") && !value.is_number()) return true;
    if (keyword == "required" && !value.is_object()) return true;
    if (keyword == "type") return is_type(argument, value);
    if (keyword == "minimum") return value >= argument;
    if (keyword == "maximum") return value <= argument;
    if (keyword == "minItems" || keyword == "minProperties") return value.size() >= argument.get<std::size_t>();
    if (keyword == "maxItems" || keyword == "maxProperties") return value.size() <= argument.get<std::size_t>();
    if (keyword == "enum") return std::find(argument.begin(), argument.end(), value) != argument.end();
    if (keyword == "pattern")
      return std::regex_search(value.get<std::string>(), std::regex(argument.get<std::string>()));
    if (keyword == "required") {
      return std::all_of(argument.begin(), argument.end(),
                         [&](const Json& name) { return value.contains(name.get<std::string>()); });
    }
    if (keyword == "anyOf") {
      return std::any_of(argument.begin(), argument.end(),
                         [&](const Json& one) { return run(one, value, "").empty(); });
    }
    if (keyword == "additionalProperties") {
      if (argument.is_object()) return true;
      for (const auto& [name, member] : value.items()) {
        if (!schema["properties"].contains(name)) return false;
      }
      return true;
    }
    ADD_FAILURE() << "the schema uses " << keyword << ", which this test doesn't know";
    return false;
  }

  std::string inside(const std::string& keyword, const Json& argument, const Json& value, const std::string& path) {
    std::string found;
    const auto descend = [&](const Json& inner_schema, const Json& inner, const std::string& inner_path) {
      if (found.empty()) found = run(inner_schema, inner, inner_path);
    };
    if (keyword == "properties") {
      for (const auto& [name, member] : value.items()) {
        if (argument.contains(name)) descend(argument[name], member, path + "." + name);
      }
    } else if (keyword == "additionalProperties" && argument.is_object()) {
      for (const auto& [name, member] : value.items()) descend(argument, member, path + "." + name);
    } else if (keyword == "propertyNames") {
      for (const auto& [name, member] : value.items()) descend(argument, Json(name), path + " name " + name);
    } else if (keyword == "items") {
      for (std::size_t i = 0; i < value.size(); ++i) descend(argument, value[i], path + "[" + std::to_string(i) + "]");
    }
    return found;
  }
};

std::string fits(const Json& value) { return SchemaCheck().run(Json::parse(schema()), value, "$"); }

Json value_of(const std::string& text) {
  Problems problems;
  return Json::parse(plain_json(text, problems).value());
}

std::string file_text(const std::string& name) {
  std::ifstream in(std::string(HEADGATE_SOURCE_DIR) + "/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Schema, FitsTheExamples) {
  for (const char* name : {"minimal", "demo", "keys"}) {
    const std::string text = file_text("config/examples/" + std::string(name) + ".jsonc");
    ASSERT_FALSE(text.empty()) << name;
    EXPECT_EQ(fits(value_of(text)), "") << name;
  }
}

TEST(Schema, RefusesWhatTheReaderRefuses) {
  for (const std::string& text : {
           with_root(R"("worker": 2)"),
           with_root(R"("workers": 0)"),
           with_root(R"("workers": 1.5)"),
           with_root(R"("drain": 30)"),
           with_root(R"("drain": "30 s")"),
           with_root(R"("limits": {"body": "32mb"})"),
           with_pool(R"("balance": "random")"),
           with_pool(R"("quality": 2)"),
           with_backends("[]"),
           with_backends("[{}]"),
           with_backends(R"([{"url": "http://h/v1"}])"),
           with_backends(R"([{"url": "http://h", "weight": -1}])"),
           with_keys(R"([{"name": "a", "sha256": "abc"}])"),
           with_listen(R"("data": "localhost:1", "allow_anonymous": true)"),
           text_of({.routes = R"({"chat": {"pools": []}})"}),
           text_of({.routes = "{}"}),
           text_of(
               {.pools =
                    R"({"a b": {"backends": [{"url": "http://h"}]}, "small": {"backends": [{"url": "http://i"}]}})"}),
       }) {
    EXPECT_NE(fits(value_of(text)), "") << text;
    EXPECT_FALSE(load(text).options) << text;
  }
}

TEST(Schema, AcceptsVariablesInPlaceOfAnyText) {
  const std::string text =
      with_root(R"("$schema": "x", "drain": "${WAIT}", "limits": {"body": "${N}MiB"}, "log": {"level": "${L}"})");
  EXPECT_EQ(fits(value_of(text)), "");
  EXPECT_TRUE(load(text, {{"WAIT", "1s"}, {"N", "2"}, {"L", "warn"}}).options);
}

// Each default in the schema, written out, gives the options that leaving it out gives.
TEST(Schema, ItsDefaultsAreTheLoadersDefaults) {
  const Json printed = Json::parse(schema());
  Json file = value_of(text_of({}));
  const std::string without = redacted(*load(file.dump()).options);
  std::size_t written = 0;
  // An object without defaults stays away.
  const auto write_all = [&written](const Json& object_schema, Json& out, const auto& self) -> void {
    for (const auto& [name, field] : object_schema["properties"].items()) {
      if (field.contains("default") && !out.contains(name)) {
        out[name] = field["default"];
        ++written;
      } else if (field.value("type", "") == "object" && field.contains("properties")) {
        Json& member = out[name];
        self(field, member, self);
        if (member.is_null()) out.erase(name);
      }
    }
  };
  write_all(printed, file, write_all);
  write_all(printed["properties"]["pools"]["additionalProperties"], file["pools"]["small"], write_all);
  write_all(printed["properties"]["routes"]["additionalProperties"], file["routes"]["chat"], write_all);
  const Loaded loaded = load(file.dump());
  ASSERT_TRUE(loaded.options) << all_of(loaded) << file.dump(2);
  EXPECT_EQ(redacted(*loaded.options), without);
  EXPECT_GT(written, 50u);
}

template <class T>
void expect_described(const Json& object_schema, const std::string& path) {
  std::set<std::string> described;
  each_field<T>([&](const auto& field) {
    using Member = typename std::decay_t<decltype(field)>::Type;
    described.insert(field.name);
    ASSERT_TRUE(object_schema["properties"].contains(field.name)) << path << "." << field.name;
    const Json& printed = object_schema["properties"][field.name];
    EXPECT_EQ(printed["description"].get<std::string>().rfind(field.doc, 0), 0u) << path << "." << field.name;
    const std::string doc = field.doc;
    EXPECT_TRUE(!doc.empty() && doc.size() < 120 && doc.find('\n') == std::string::npos) << path << "." << field.name;
    if constexpr (Described<Member>) {
      expect_described<Member>(printed, path + "." + field.name);
    } else if constexpr (Map<Member>) {
      expect_described<typename Member::mapped_type>(printed["additionalProperties"], path + "." + field.name);
    } else if constexpr (Vector<Member>) {
      if constexpr (Described<typename Member::value_type>) {
        expect_described<typename Member::value_type>(printed["items"], path + "." + field.name);
      }
    }
  });
  EXPECT_EQ(object_schema["additionalProperties"], false) << path;
  EXPECT_EQ(object_schema["properties"].size(), described.size() + (path == "$" ? 1 : 0)) << path;
}

TEST(Schema, HoldsEveryDescribedField) { expect_described<Options>(Json::parse(schema()), "$"); }

}  // namespace
}  // namespace headgate::config
