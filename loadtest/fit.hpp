// Rows made to fit a terminal, so that a screen drawn from its upper left corner neither wraps nor scrolls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headgate::loadtest {

struct ScreenSize {
  int columns = 80, rows = 24;
};

// Of the terminal behind a file descriptor, as it is now; 80x24 where that cannot be known.
ScreenSize terminal_size(int fd);

// The first `columns` characters (bytes of UTF-8 go together, colour codes take no room and all stay).
std::string cut_to(std::string_view text, int columns);

struct Row {
  std::string text;  // without line end
  int worth;
};

// Every row with a line end; the last line and the last column stay free for the cursor, since erasing from there takes
// the last character away. Where there are too many rows, those of least worth are left out, of equal ones the last.
std::string fitted(std::vector<Row> rows, const ScreenSize& size);

}  // namespace headgate::loadtest
