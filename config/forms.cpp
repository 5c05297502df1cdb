#include "config/forms.hpp"

#include <algorithm>

#include "config/address.hpp"
#include "config/network.hpp"

namespace headgate::config::forms {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
bool is_visible(char c) { return c >= '!' && c <= '~'; }
bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

template <class Test>
bool all(std::string_view text, std::size_t longest, Test test) {
  return !text.empty() && text.size() <= longest && std::all_of(text.begin(), text.end(), test);
}

}  // namespace

std::string listen_problem(std::string_view text) { return parse_listen(text).problem; }

std::string url_problem(std::string_view text) { return parse_backend_url(text).problem; }

std::string digest_problem(std::string_view text) {
  const bool hex =
      all(text, 64, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); });
  if (hex && text.size() == 64) return {};
  return "must be a SHA-256 digest of 64 hex digits: printf %s \"$KEY\" | sha256sum";
}

std::string name_problem(std::string_view text) {
  const bool good = all(text, 64, [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
  return good ? "" : "must be 1 to 64 letters, digits, dots, underscores or hyphens";
}

std::string model_problem(std::string_view text) {
  return all(text, 256, [](char c) { return !is_control(c); }) ? ""
                                                               : "must be 1 to 256 bytes without control characters";
}

std::string credential_problem(std::string_view text) {
  if (text.empty()) return "must not be empty: leave the field out to have none";
  return all(text, 4096, is_visible) ? "" : "must be 1 to 4096 visible ASCII characters, without spaces or line ends";
}

std::string path_problem(std::string_view text) {
  const bool good = all(text, 1024, [](char c) { return is_visible(c) && c != '#'; }) && text.front() == '/';
  return good ? "" : "must be a path such as \"/health\": it begins with / and has no spaces";
}

std::string network_problem(std::string_view text) { return parse_network(text).problem; }

std::string file_problem(std::string_view text) {
  return all(text, 4096, [](char c) { return !is_control(c); }) ? "" : "must be a file name";
}

std::string server_name_problem(std::string_view text) {
  const bool good =
      all(text, 253, [](char c) { return is_alphanumeric(c) || c == '.' || c == ':' || c == '_' || c == '-'; });
  return good ? "" : "must be a host name or an address, such as \"models.internal\"";
}

// As a browser writes it: nothing behind host and port, no upper case.
std::string origin_problem(std::string_view text) {
  const std::string_view rest = text.substr(std::min(text.size(), text.find("://")));
  const bool scheme = all(text.substr(0, text.size() - rest.size()), 32,
                          [](char c) { return is_alphanumeric(c) || c == '+' || c == '.' || c == '-'; });
  const bool place = all(rest.substr(std::min<std::size_t>(3, rest.size())), 300, [](char c) {
    return is_alphanumeric(c) || c == '.' || c == '-' || c == ':' || c == '[' || c == ']';
  });
  const bool lower = std::none_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  const bool default_port =
      (text.starts_with("https:") && text.ends_with(":443")) || (text.starts_with("http:") && text.ends_with(":80"));
  if (default_port) return "must be without its port, which browsers leave out: it is the scheme's own";
  if (text == "*" || (scheme && place && lower)) return {};
  return "must be an origin as browsers send it, such as \"https://app.example:8443\": scheme, host and port in lower "
         "case, nothing behind; or \"*\"";
}

std::string log_problem(std::string_view text) {
  return all(text, 4096, [](char c) { return !is_control(c); }) ? "" : "must be stdout, stderr, off or a file name";
}

}  // namespace headgate::config::forms
