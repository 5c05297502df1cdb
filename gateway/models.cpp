#include "gateway/models.hpp"

#include <algorithm>
#include <vector>

#include "gateway/json_text.hpp"

namespace headgate::gateway {
namespace {

void append_one(std::string& out, std::string_view name) {
  out += "{\"id\":";
  append_quoted(out, name);
  // created is required by client libraries; a route has no date
  out += ",\"object\":\"model\",\"created\":0,\"owned_by\":\"headgate\"}";
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void append_model_list(std::string& out, const config::Catalog& catalog, const Identity& who) {
  std::vector<std::string_view> names;
  for (const auto& [name, route] : catalog.routes) {
    if (who.may_use(route.id)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  out += "{\"object\":\"list\",\"data\":[";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) out += ',';
    append_one(out, names[i]);
  }
  out += "]}";
}

bool append_model(std::string& out, const config::Catalog& catalog, const Identity& who, std::string_view name) {
  const auto found = catalog.routes.find(name);
  if (found == catalog.routes.end() || !who.may_use(found->second.id)) return false;
  append_one(out, name);
  return true;
}

std::optional<std::string> model_in_target(std::string_view target) {
  constexpr std::string_view prefix = "/v1/models/";
  target = target.substr(0, target.find('?'));
  if (!target.starts_with(prefix) || target.size() == prefix.size()) return std::nullopt;
  target.remove_prefix(prefix.size());
  std::string name;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] != '%') {
      name += target[i];
      continue;
    }
    if (target.size() - i < 3) return std::nullopt;
    const int high = hex_digit(target[i + 1]), low = hex_digit(target[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    name += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return name;
}

}  // namespace headgate::gateway
