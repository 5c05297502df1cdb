// Edits by offset: a body as received, with a few ranges replaced, as pieces for one gathered write. Nothing is copied
// but the replacement texts, which the Splice owns.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "backends/wire/json_skim.hpp"

namespace headgate::wire {

class Splice {
 public:
  static constexpr std::size_t edits_max = 4;
  void clear();
  // Ranges must not overlap; any order. An empty range inserts at `range.begin`. More than edits_max: a bug, ignored.
  void replace(ByteRange range, std::string_view text);
  // The edited body as pieces over `body`; valid until the next change. At most 2 * edits_max + 1.
  std::span<const std::string_view> pieces(std::string_view body);
  std::size_t size(std::string_view body) const;

 private:
  struct Edit {
    ByteRange range;
    std::string text;
  };
  std::array<Edit, edits_max> edits_;
  std::size_t count_ = 0;
  std::array<std::string_view, 2 * edits_max + 1> pieces_;
};

// Make the backend see this model name.
void set_model(Splice& splice, const Skim& skim, std::string_view model);
// Make the backend report usage at the end of a stream. No-op if it is already asked for.
void ask_for_usage(Splice& splice, const Skim& skim);
// text as a JSON string with quotes
std::string json_quoted(std::string_view text);

}  // namespace headgate::wire
