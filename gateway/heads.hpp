// Heads on their way through: which lines go on, which stop here, which are ours (HTTP.md "What is changed on the
// way").
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "gateway/exchange.hpp"

namespace headgate::gateway {

// The request for this backend: head into x.upstream_head, body spliced. Pieces for one gathered write.
std::span<backends::Piece> write_request_pieces(Exchange& x, const config::Target& target,
                                                std::span<backends::Piece> pieces);

struct AnswerLines {
  bool event_stream = false, json = false, encoded = false;
  Nanos retry_after{-1};
  std::string advice;  // of an error: the lines that say when to come back
};
// Lines of a backend's head that the caller gets, without framing and what is ours. Only a 200 is taken for an event
// stream: an error goes on as it is, whatever its type.
AnswerLines copy_answer_lines(std::string& out, const wire::ResponseHead& head, const config::Target& target);

// Status line, the backend's lines, ours. `framing` is the last line with its CR LF, or empty.
void write_answer_head(Exchange& x, std::uint16_t status, std::string_view framing);

void append_chunk_size(std::string& out, std::size_t size);

// False if the text holds the backend's address or key, as it stands or written with JSON escapes.
bool may_be_shown(std::string_view text, const config::Target& target);

}  // namespace headgate::gateway
