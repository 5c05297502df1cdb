// The forms that text in the file may have, each with its check, its pattern for the schema and its words.
#pragma once

#include <string>
#include <string_view>

#include "config/field.hpp"

namespace headgate::config::forms {

std::string listen_problem(std::string_view text);
std::string url_problem(std::string_view text);
std::string digest_problem(std::string_view text);
std::string name_problem(std::string_view text);
std::string model_problem(std::string_view text);
std::string credential_problem(std::string_view text);
std::string path_problem(std::string_view text);
std::string log_problem(std::string_view text);
std::string file_problem(std::string_view text);
std::string network_problem(std::string_view text);
std::string server_name_problem(std::string_view text);
std::string origin_problem(std::string_view text);

inline constexpr Text listen{"address:port", R"(^(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-fA-F:.]+\]):\d{1,5}$)", listen_problem};
inline constexpr Text url{"http://host:port or https://host:port", R"(^https?://[^/?#@]+/?$)", url_problem};
inline constexpr Text digest{"64 hex digits", R"(^[0-9a-fA-F]{64}$)", digest_problem, true};
inline constexpr Text name{"letters, digits, . _ -; at most 64", R"(^[A-Za-z0-9._-]{1,64}$)", name_problem};
inline constexpr Text model{"1 to 256 bytes without control characters", R"(^[^\u0000-\u001f\u007f]{1,256}$)",
                            model_problem};
inline constexpr Text credential{"1 to 4096 visible ASCII characters", R"(^[!-~]{1,4096}$)", credential_problem, true};
inline constexpr Text path{"path beginning with /", R"(^/[!-"$-~]*$)", path_problem};
inline constexpr Text file{"a file name", R"(^[^\u0000-\u001f\u007f]{1,4096}$)", file_problem};
inline constexpr Text server_name{"a host name or address", R"(^[A-Za-z0-9.:_-]{1,253}$)", server_name_problem};
inline constexpr Text network{"address or address/bits", R"(^[0-9a-fA-F:.]+(/\d{1,3})?$)", network_problem};
inline constexpr Text origin{
    "scheme://host[:port] in lower case, or *",
    R"(^(\*|[a-z][a-z0-9+.-]*://[a-z0-9.-]+(:\d{1,5})?|[a-z][a-z0-9+.-]*://\[[0-9a-f:.]+\](:\d{1,5})?)$)",
    origin_problem};
inline constexpr Text log{"stdout, stderr, off or a file name", R"(^[^\u0000-\u001f\u007f]{1,4096}$)", log_problem};

}  // namespace headgate::config::forms
