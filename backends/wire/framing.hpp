// Where a body ends. Feed what was read; it hands out the body bytes piece by piece and says what it consumed.
//
//   BodyMeter meter(head.framing, head.content_length);
//   while (!window.empty() && !meter.done() && !meter.bad()) {
//     const BodyMeter::Piece piece = meter.next(window);
//     use(piece.data); window.remove_prefix(piece.consumed);
//   }
// Chunk extensions and trailers are consumed and dropped (trailers at most 8 KiB, an extension line at most 4 KiB).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/wire/head.hpp"

namespace headgate::wire {

class BodyMeter {
 public:
  BodyMeter() = default;
  BodyMeter(Framing framing, std::uint64_t content_length);

  struct Piece {
    std::string_view data;     // body bytes inside the window; may be empty while framing is consumed
    std::size_t consumed = 0;  // framing and data; always > 0 for a non-empty window unless done or bad
  };
  Piece next(std::string_view window);

  bool done() const { return done_; }
  bool bad() const { return bad_; }  // chunk syntax broken: size with sign, 0x, bare LF, over 16 digits
  bool ends_at_eof() const { return framing_ == Framing::until_close; }
  std::uint64_t data_bytes() const { return data_bytes_; }

 private:
  enum class State : std::uint8_t {
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_start,
    trailer_name,
    trailer_value,
    trailer_lf,
    end_lf
  };
  Piece next_chunked(std::string_view window);
  void framing_byte(unsigned char c);
  void size_byte(unsigned char c);
  void line_byte(unsigned char c, State at_line_end, std::uint32_t limit);
  bool expect(unsigned char c, unsigned char wanted, State then);

  Framing framing_ = Framing::none;
  State state_ = State::size;
  bool done_ = true, bad_ = false;
  std::uint8_t digits_ = 0;
  std::uint32_t overhead_ = 0;  // bytes of the current extension, or of all trailers
  std::uint64_t left_ = 0, data_bytes_ = 0;
};

}  // namespace headgate::wire
