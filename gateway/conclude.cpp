#include "gateway/conclude.hpp"

#include <array>

#include "gateway/cors.hpp"
#include "gateway/heads.hpp"
#include "gateway/json_text.hpp"

namespace headgate::gateway {

namespace {

std::string_view why_cut(policies::End end) {
  switch (end) {
    case policies::End::stalled:
      return "the backend stalled";
    case policies::End::in_band_error:
      return "the backend reported an error";
    case policies::End::out_of_time:
      return "the time limit was reached";
    default:
      return "the backend's connection was lost";
  }
}

void append_connection_line(std::string& out, const Exchange& x) {
  if (x.close_after) {
    out.append("connection: close\r\n");
  } else if (x.head.minor == 0) {  // who speaks HTTP/1.0 expects an end, unless told
    out.append("connection: keep-alive\r\n");
  }
}

// The one error event of a stream whose head is out, then the end of the answer.
backends::Task<> end_stream_with(Exchange& x, RefusalAnswer no) {
  RequestState& r = x.request;
  r.ending = Ending::cut;
  r.cause = row_of(no.refusal).code;
  x.close_after = true;
  if (!r.event_stream) {  // an answer that is no stream can only be broken off
    r.finished = true;    // by us, not by the caller
    x.caller->reset();
    return backends::Task<>::over();
  }
  std::string event;
  if (!r.error_event_sent) {  // else the backend's own went through
    if (r.inside_event) event = "\n\n";
    append_error_event(event, no);
  }
  x.out.clear();
  if (r.chunked_out) {
    if (!event.empty()) {
      append_chunk_size(x.out, event.size());
      x.out.append(event).append("\r\n");
    }
    x.out.append("0\r\n\r\n");
  } else {
    x.out.append(event);
  }
  r.error_event_sent = true;
  return flush_answer(x);
}

// What the Dispatcher says, with what it doesn't know.
RefusalAnswer refusal_of(Exchange& x, const policies::Answer& answer) {
  const RequestState& r = x.request;
  RefusalAnswer no = refusal_for(answer, r.outcome);
  if (no.refusal == Refusal::model_not_found) no.detail = r.route->name;
  if (no.refusal == Refusal::upstream_socket) {
    no.retry_after = x.shard.come_back_in();
    no.repeat_ok = !r.budgets.repeat;
  }
  if (no.refusal == Refusal::upstream_timeout) {
    no.detail = r.passed.name;
    no.value = r.passed.waited / std::chrono::milliseconds(1);
    no.limit = std::chrono::ceil<std::chrono::milliseconds>(r.passed.limit).count();
  }
  return no;
}

// The last backend's answer as it came.
backends::Task<> relay_last(Exchange& x) {
  RequestState& r = x.request;
  LastAnswer& last = r.last;
  r.status = last.status;
  r.ending = Ending::failed;
  r.cause = "upstream_status";
  x.out.assign("HTTP/1.1 ");
  append_number(x.out, last.status);
  x.out.append(" ").append(reason_phrase(last.status)).append("\r\n").append(last.lines);
  append_own_lines(x.out, x);
  append_backend_lines(x.out, x);
  x.out.append("content-length: ");
  append_number(x.out, last.body.size());
  x.out.append("\r\n\r\n").append(last.body);
  return flush_answer(x);
}

backends::Task<> flush_rest(Exchange& x, backends::Piece rest) {
  std::array<backends::Piece, 1> pieces{rest};
  const bool sent = co_await x.send(pieces);
  if (!sent) x.close_after = true;
}

}  // namespace

// Names and form of the OpenAI API: "x-ratelimit-limit-requests: 600", resets as "1500ms".
void append_rate_lines(std::string& out, const Exchange& x) {
  const auto one = [&out](std::string_view what, const policies::RateState::Rate& rate) {
    if (rate.limit == 0) return;
    out.append("x-ratelimit-limit-").append(what).append(": ");
    append_number(out, rate.limit);
    out.append("\r\nx-ratelimit-remaining-").append(what).append(": ");
    append_number(out, rate.remaining);
    out.append("\r\nx-ratelimit-reset-").append(what).append(": ");
    append_number(out, (rate.full_in + std::chrono::milliseconds(1) - Nanos{1}) / std::chrono::milliseconds(1));
    out.append("ms\r\n");
  };
  one("requests", x.request.rates.requests);
  one("tokens", x.request.rates.tokens);
}

void append_own_lines(std::string& out, const Exchange& x) {
  out.append("x-request-id: ").append(x.request_id).append("\r\n");
  append_rate_lines(out, x);
  append_cors_lines(out, x);
  append_connection_line(out, x);
}

void append_backend_lines(std::string& out, const Exchange& x) {
  const RequestState& r = x.request;
  if (!r.target) return;
  out.append("x-headgate-backend: ").append(r.target->name).append("\r\nx-headgate-attempts: ");
  append_number(out, r.attempts);
  out.append("\r\nx-headgate-queue-ms: ");
  append_number(out, (r.dispatched - r.arrived) / std::chrono::milliseconds(1));
  out.append("\r\n");
}

backends::Task<> flush_answer(Exchange& x) {
  x.request.finished = true;
  std::array<backends::Piece, 1> pieces{boost::asio::buffer(x.out)};
  std::span<backends::Piece> rest = pieces;
  if (x.send_now(rest)) return backends::Task<>::over();
  return flush_rest(x, rest.empty() ? backends::Piece() : rest.front());
}

void write_json_answer(Exchange& x, std::uint16_t status, std::string_view body) {
  x.request.status = status;
  x.out.assign("HTTP/1.1 ");
  append_number(x.out, status);
  x.out.append(" ").append(reason_phrase(status)).append("\r\ncontent-type: application/json\r\n");
  append_own_lines(x.out, x);
  x.out.append("content-length: ");
  append_number(x.out, body.size());
  x.out.append("\r\n\r\n").append(body);
}

backends::Task<> answer_ourselves(Exchange& x, RefusalAnswer no) {
  RequestState& r = x.request;
  x.shard.counters.refused(no.refusal);
  no.request_id = x.request_id;
  if (r.head_sent) return end_stream_with(x, no);
  const RefusalRow& row = row_of(no.refusal);
  r.ending = row.ending;
  r.cause = row.code;
  r.status = no.status != 0 ? no.status : row.status;
  // An unread body too long to be taken in ends the connection, and one that its caller may now keep to himself, as he
  // was not told to go on; so does one that broke the wire rules.
  const bool long_rest = x.head.framing != wire::Framing::length || x.head.content_length > (64 << 10);
  const bool may_stay_out = x.head.expect_continue && x.body.size() == 0;
  if (!x.body.done() && (long_rest || may_stay_out)) x.close_after = true;
  no.without_body = x.head.method == "HEAD";
  no.backend_had_part = r.target != nullptr && no.refusal != Refusal::upstream_socket;  // that one never heard of it
  x.out.clear();
  append_refusal_head(x.out, no);
  if (no.backend_had_part) append_backend_lines(x.out, x);
  append_rate_lines(x.out, x);
  append_cors_lines(x.out, x);
  append_connection_line(x.out, x);
  append_refusal_body(x.out, no);
  return flush_answer(x);
}

void note_cancelled(Exchange& x) {
  RequestState& r = x.request;
  r.ending = Ending::cancelled;
  r.cause = "caller_left";
  if (r.status == 0) r.status = 499;
  r.finished = true;
  x.close_after = true;
  x.shard.counters.cancelled_by_caller.add();
}

backends::Task<> conclude(Exchange& x, const policies::Answer& answer) {
  RequestState& r = x.request;
  r.id = policies::RequestId::none;
  if (r.head_sent) {
    RefusalAnswer cut{.refusal = Refusal::stream_cut, .detail = why_cut(r.outcome.end)};
    if (!r.content_sent && answer.code != policies::Code::stream_cut && answer.code != policies::Code::as_received) {
      cut = refusal_of(x, answer);
    }
    x.shard.counters.streams_cut.add();
    return answer_ourselves(x, cut);
  }
  if (answer.code == policies::Code::as_received) {
    if (r.last.presentable) return relay_last(x);
    return answer_ourselves(x,
                            {.refusal = Refusal::upstream_status, .status = r.last.status, .more_head = r.last.advice});
  }
  return answer_ourselves(x, refusal_of(x, answer));
}

}  // namespace headgate::gateway
