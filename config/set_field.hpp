// One value of a configuration set from outside of its file: "pools.small.queue.requests_max=5". The path is written as
// problems show it ($. in front may be left out; [0] is an item, ["a.b"] a name with dots). The value is JSON, or text
// as it stands. Sections that the file leaves out are made; entries that the user named and list items must be there.
//
//   set_field(tree, "pools.small.backends[0].slots=4", problems);
#pragma once

#include <string_view>

#include "config/node.hpp"

namespace headgate::config {

// What is wrong is a Problem with line 0.
void set_field(Node& root, std::string_view set, Problems& problems);

}  // namespace headgate::config
