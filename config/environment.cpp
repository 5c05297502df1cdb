#include "config/environment.hpp"

#include <algorithm>
#include <cstdlib>

namespace headgate::config {
namespace {

bool is_variable(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && name.size() <= 256 && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

Parsed<std::string> fail(std::string problem) { return {std::nullopt, std::move(problem)}; }

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Parsed<std::string> expand(std::string_view text, const Environment& environment) {
  std::string out;
  while (!text.empty()) {
    const auto dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar);
    if (text.substr(0, 3) == "$${") {
      out += "${";
      text.remove_prefix(3);
    } else if (text.substr(0, 2) == "${") {
      const auto close = text.find('}');
      if (close == std::string_view::npos) return fail("has a ${ without its }; write $${ for a plain ${");
      const std::string name(text.substr(2, close - 2));
      if (!is_variable(name)) return fail("has a ${...} that names no variable; write $${ for a plain ${");
      const auto value = environment(name);
      if (!value) return fail("needs the environment variable " + name + ", which is not set");
      out += *value;
      text.remove_prefix(close + 1);
    } else {
      out += '$';
      text.remove_prefix(1);
    }
    if (out.size() > expanded_bytes_max) break;
  }
  if (out.size() > expanded_bytes_max) return fail("is longer than 64 KiB");
  return {std::move(out), {}};
}

}  // namespace headgate::config
