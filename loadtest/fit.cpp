#include "loadtest/fit.hpp"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstddef>

namespace headgate::loadtest {

ScreenSize terminal_size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

std::string cut_to(std::string_view text, int columns) {
  std::string out;
  bool whole = true;  // the character that continuation bytes belong to was taken
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      const std::size_t end = std::min(text.find('m', i), text.size() - 1);
      out += text.substr(i, end - i + 1);
      i = end;
      continue;
    }
    const bool continues = (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
    if (!continues) whole = columns-- > 0;
    if (whole) out += text[i];
  }
  return out;
}

std::string fitted(std::vector<Row> rows, const ScreenSize& size) {
  const auto room = static_cast<std::size_t>(std::max(size.rows - 1, 1));
  std::vector<std::size_t> kept(rows.size());
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = i;
  std::ranges::stable_sort(kept, [&](std::size_t a, std::size_t b) { return rows[a].worth > rows[b].worth; });
  kept.resize(std::min(kept.size(), room));
  std::ranges::sort(kept);
  std::string screen;
  for (const std::size_t i : kept) screen += cut_to(rows[i].text, size.columns - 1) + "\n";
  return screen;
}

}  // namespace headgate::loadtest
