// A small good configuration and loading of text with a made-up environment, for the tests of this folder.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "config/load.hpp"

namespace headgate::config {

inline Environment environment_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

inline Loaded load(std::string_view text, std::map<std::string, std::string> environment = {}) {
  return load_text(text, environment_of(std::move(environment)));
}

inline std::string all_of(const Loaded& loaded) {
  std::string text;
  for (const Problem& problem : loaded.problems) text += to_text(problem, "f") + "\n";
  return text;
}

// Each part on a line of its own: `extra` (fields of the root, ended by a comma) on line 2, pools on 3, routes on 4.
struct Parts {
  std::string extra = R"("listen": {"allow_anonymous": true},)";
  std::string pools = R"({"small": {"backends": [{"url": "http://127.0.0.1:9001"}]}})";
  std::string routes = R"({"chat": {"pools": ["small"]}})";
};

inline std::string text_of(const Parts& parts) {
  return "{\n" + parts.extra + "\n\"pools\": " + parts.pools + ",\n\"routes\": " + parts.routes + "}\n";
}

// The fields of the root beside `listen`, of the pool `small`, of its backend, of the route `chat`.
inline std::string with_root(const std::string& fields) {
  return text_of({.extra = R"("listen": {"allow_anonymous": true}, )" + fields + ","});
}
inline std::string with_listen(const std::string& fields) {
  return text_of({.extra = "\"listen\": {" + fields + "},"});
}
inline std::string with_pool(const std::string& fields) {
  return text_of({.pools = R"({"small": {"backends": [{"url": "http://127.0.0.1:9001"}], )" + fields + "}}"});
}
inline std::string with_backends(const std::string& list) {
  return text_of({.pools = R"({"small": {"backends": )" + list + "}}"});
}
inline std::string with_route(const std::string& fields) {
  return text_of({.routes = R"({"chat": {"pools": ["small"], )" + fields + "}}"});
}
inline std::string with_keys(const std::string& list) { return text_of({.extra = "\"keys\": " + list + ","}); }

}  // namespace headgate::config
