// Small files that people write: whole, and never more than they may have.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace headgate::backends {

// Nothing: `problem` says why, to follow the file's name ("cannot be opened: No such file or directory").
std::optional<std::string> read_text_file(const std::string& path, std::size_t bytes_max, std::string& problem);

}  // namespace headgate::backends
