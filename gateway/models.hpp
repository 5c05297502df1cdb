// Bodies of GET /v1/models and GET /v1/models/{id} in OpenAI's shape: the routes that a key may use, by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/catalog.hpp"
#include "gateway/keys.hpp"

namespace headgate::gateway {

void append_model_list(std::string& out, const config::Catalog& catalog, const Identity& who);

// False, and nothing appended, when the route does not exist or the key may not use it: 404 either way, so that a key
// learns no name it has no use for.
bool append_model(std::string& out, const config::Catalog& catalog, const Identity& who, std::string_view name);

// The {id} of "/v1/models/{id}", query cut off, percent-decoded ("a%2Fb" and "a/b" are the same name). Nothing when the
// target is another path, the id is empty or an escape is malformed.
std::optional<std::string> model_in_target(std::string_view target);

}  // namespace headgate::gateway
