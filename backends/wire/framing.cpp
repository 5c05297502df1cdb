#include "backends/wire/framing.hpp"

#include <algorithm>

#include "backends/wire/byte_search.hpp"
#include "backends/wire/token.hpp"

namespace headgate::wire {
namespace {

constexpr std::uint32_t extension_max = 4096;
constexpr std::uint32_t trailers_max = 8192;
constexpr std::uint8_t size_digits_max = 16;

int hex_value(unsigned char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const unsigned char folded = c | 0x20;
  return folded >= 'a' && folded <= 'f' ? folded - 'a' + 10 : -1;
}

}  // namespace

BodyMeter::BodyMeter(Framing framing, std::uint64_t content_length) : framing_(framing) {
  done_ = framing == Framing::none || (framing == Framing::length && content_length == 0);
  left_ = framing == Framing::length ? content_length : 0;
}

BodyMeter::Piece BodyMeter::next(std::string_view window) {
  if (done_ || bad_) return {};
  if (framing_ == Framing::chunked) return next_chunked(window);
  std::size_t size = window.size();
  if (framing_ == Framing::length) {
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
    left_ -= size;
    done_ = left_ == 0;
  }
  data_bytes_ += size;
  return {window.substr(0, size), size};
}

// Framing, at most one run of data, and the framing behind it: one call per chunk.
BodyMeter::Piece BodyMeter::next_chunked(std::string_view window) {
  Piece piece;
  while (piece.consumed < window.size() && !done_ && !bad_) {
    if (state_ != State::data) {
      framing_byte(octet(window[piece.consumed++]));
      continue;
    }
    if (!piece.data.empty()) break;
    const std::size_t here = window.size() - piece.consumed;
    const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(here, left_));
    piece.data = window.substr(piece.consumed, size);
    piece.consumed += size;
    data_bytes_ += size;
    left_ -= size;
    if (left_ == 0) state_ = State::data_cr;
  }
  return piece;
}

void BodyMeter::framing_byte(unsigned char c) {
  switch (state_) {
    case State::size:
      size_byte(c);
      break;
    case State::extension:
      line_byte(c, State::size_lf, extension_max);
      break;
    case State::size_lf:
      expect(c, '\n', left_ == 0 ? State::trailer_start : State::data);
      break;
    case State::data:
      break;
    case State::data_cr:
      expect(c, '\r', State::data_lf);
      break;
    case State::data_lf:
      if (expect(c, '\n', State::size)) digits_ = 0;
      break;
    case State::trailer_start:
      if (c == '\r') {
        state_ = State::end_lf;
        break;
      }
      if (c == ':') bad_ = true;
      state_ = State::trailer_name;
      [[fallthrough]];
    case State::trailer_name:
      ++overhead_;
      if (c == ':') state_ = State::trailer_value;
      bad_ = bad_ || (c != ':' && !is_token(static_cast<char>(c))) || overhead_ > trailers_max;
      break;
    case State::trailer_value:
      line_byte(c, State::trailer_lf, trailers_max);
      break;
    case State::trailer_lf:
      expect(c, '\n', State::trailer_start);
      break;
    case State::end_lf:
      done_ = expect(c, '\n', State::end_lf);
      break;
  }
}

void BodyMeter::size_byte(unsigned char c) {
  const int value = hex_value(c);
  if (value >= 0) {
    bad_ = digits_ == size_digits_max;
    ++digits_;
    left_ = left_ << 4 | static_cast<unsigned>(value);
  } else if (digits_ == 0) {
    bad_ = true;
  } else if (c == '\r') {
    overhead_ = 0;
    state_ = State::size_lf;
  } else if (c == ';') {
    overhead_ = 0;
    state_ = State::extension;
  } else {
    bad_ = true;
  }
}

void BodyMeter::line_byte(unsigned char c, State at_line_end, std::uint32_t limit) {
  ++overhead_;
  if (c == '\r') {
    if (at_line_end == State::size_lf) overhead_ = 0;  // from here it counts trailers
    state_ = at_line_end;
  } else {
    bad_ = ControlByte::is(c) || overhead_ > limit;
  }
}

bool BodyMeter::expect(unsigned char c, unsigned char wanted, State then) {
  bad_ = c != wanted;
  if (!bad_) state_ = then;
  return !bad_;
}

}  // namespace headgate::wire
