// The bytes of answers: unary bodies, event streams, errors, in the OpenAI API's shapes.
// Everything is a function of the request, so the same request gets the same bytes from any replica: ids come from the
// conversation, `created` is fixed, and no date is sent.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "backends/mock/request.hpp"

namespace headgate::mock {

// An answer being given.
struct Answer {
  Kind kind = Kind::chat;
  std::string model;  // as a JSON string with its quotes
  std::uint64_t id = 0;
  std::uint32_t prompt_tokens = 0, output_tokens = 0;
  bool capped = false;  // finish_reason length, else stop
  bool leading_space = false;
  // Progress.
  std::uint64_t state = 0;
  std::uint32_t produced = 0;
};
void start_answer(Kind kind, const Ask& ask, Answer& out);

// The rest of the text from where the answer stands, as a whole body.
void append_body(Answer& answer, std::string& out);
void append_embeddings(const Ask& ask, std::string& out);
std::string models_body(std::span<const std::string> names);
std::string model_body(std::string_view name);

// The events of one stream, each appended as one chunk (or bare, for HTTP/1.0).
class EventWriter {
 public:
  void start(const Answer& answer, bool chunked);
  void role(std::string& out) const;                     // chat only
  void content(Answer& answer, std::string& out) const;  // the next token
  void finish(const Answer& answer, std::string& out) const;
  void usage(const Answer& answer, std::string& out) const;
  void bare(std::string_view event, std::string& out) const;  // as it stands, a comment or data: [DONE]
  void end(std::string& out) const;                           // last chunk

 private:
  void piece(std::initializer_list<std::string_view> parts, std::string& out) const;

  bool chunked_ = true, chat_ = true;
  std::string lead_;  // "data: {..." up to the choices
};

// {"error":{...}}; empty param or code: null.
std::string error_body(std::string_view message, std::string_view type, std::string_view param, std::string_view code);
std::string quoted(std::string_view text);  // as a JSON string

// Status line and headers. `headers`: further lines with CR LF.
void append_head(std::uint16_t status, std::string_view type, std::size_t length, bool close, std::string_view headers,
                 std::string& out);
void append_stream_head(bool chunked, bool close, std::string& out);

}  // namespace headgate::mock
