// A body inside a connection's Buffer: framing is removed in place, so that the body's bytes lie together behind
// `offset` (the head that is kept, or 0), with whatever follows the message behind them.
//
//   body.start(head.framing, head.content_length, offset);
//   body.pull(buffer);            // after each read
//   use(body.data(buffer)); body.consume(buffer, n);   // consume: only with offset 0
#pragma once

#include <cstring>
#include <string_view>

#include "backends/io/buffer.hpp"
#include "backends/wire/framing.hpp"

namespace headgate::backends {

class BodyReader {
 public:
  void start(wire::Framing framing, std::uint64_t content_length, std::size_t offset) {
    meter_ = wire::BodyMeter(framing, content_length);
    offset_ = offset;
    size_ = 0;
  }

  void pull(Buffer& buffer) {
    const std::size_t raw_begin = offset_ + size_;
    std::size_t at = raw_begin;
    while (at < buffer.size() && !meter_.done() && !meter_.bad()) {
      const wire::BodyMeter::Piece piece = meter_.next(buffer.view().substr(at));
      if (!piece.data.empty()) {
        char* to = buffer.data() + offset_ + size_;
        if (piece.data.data() != to) std::memmove(to, piece.data.data(), piece.data.size());
        size_ += piece.data.size();
      }
      if (piece.consumed == 0) break;
      at += piece.consumed;
    }
    if (at != offset_ + size_) buffer.erase(offset_ + size_, at);
  }

  std::string_view data(const Buffer& buffer) const { return buffer.view().substr(offset_, size_); }
  void consume(Buffer& buffer, std::size_t n) {
    buffer.consume(n);
    size_ -= n;
  }

  void erased(std::size_t n) { size_ -= n; }  // by the owner of the buffer, from the data

  bool done() const { return meter_.done(); }
  bool bad() const { return meter_.bad(); }
  bool ends_at_eof() const { return meter_.ends_at_eof(); }
  std::size_t size() const { return size_; }
  std::uint64_t total() const { return meter_.data_bytes(); }

 private:
  wire::BodyMeter meter_;
  std::size_t offset_ = 0, size_ = 0;
};

}  // namespace headgate::backends
