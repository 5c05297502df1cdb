// Ends of a request that no backend's success made: our own answers, the last backend's error, error events.
#pragma once

#include <string_view>

#include "gateway/exchange.hpp"
#include "gateway/refusal.hpp"

namespace headgate::gateway {

// What the Dispatcher answers: a refusal, the last attempt's own answer, or the end of a cut stream.
backends::Task<> conclude(Exchange& x, const policies::Answer& answer);

// A refusal as a whole answer, or as one error event when a stream's head is out.
backends::Task<> answer_ourselves(Exchange& x, RefusalAnswer no);

// A JSON answer made here; written to x.out, sent by flush_answer().
void write_json_answer(Exchange& x, std::uint16_t status, std::string_view body);
backends::Task<> flush_answer(Exchange& x);

void note_cancelled(Exchange& x);

// Header lines of ours: on every answer the request's id and, at the last one, the connection's end; on one that a
// backend had a part in, where it came from.
void append_own_lines(std::string& out, const Exchange& x);
void append_backend_lines(std::string& out, const Exchange& x);

}  // namespace headgate::gateway
