// What a connection answers: the work of a request from its body to the last byte, and the ways in which faults break
// it.
#include <algorithm>
#include <chrono>

#include "backends/mock/connection.hpp"
#include "backends/mock/replica.hpp"

namespace headgate::mock {
void Connection::begin(Kind kind, std::string_view body) {
  kind_ = kind;
  in_work_ = true;
  ++replica_.state().open;
  const std::uint64_t serial = replica_.next_request();
  RequestReader& requests = replica_.scratch().requests;
  if (!requests.read(kind, body, backends::BufferPool::padding, ask_,
                     replica_.profile().paced ? replica_.profile().block_tokens : 0)) {
    const Problem& problem = requests.problem();
    return refuse_request(400, problem.message, problem.param, problem.code);
  }
  const std::vector<std::string>& named = replica_.options().models;
  if (!named.empty() && std::find(named.begin(), named.end(), ask_.model) == named.end()) {
    return refuse_request(404, "the model '" + ask_.model + "' does not exist", "model", "model_not_found");
  }
  if (kind != Kind::embedding) start_answer(kind, ask_, answer_);
  fault_ = replica_.faults().faults().empty() ? std::nullopt : replica_.faults().pick(serial, false);
  if (fault_) return apply(*fault_);
  start_work();
}

void Connection::apply(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::hang:
      phase_ = Phase::silent;
      return;
    case FaultKind::slow_head:
      phase_ = Phase::delayed;
      due_ = false;
      alarm_.set(after(std::chrono::steady_clock::now(), std::chrono::milliseconds(fault.delay_ms)));
      return;
    case FaultKind::status: {
      const std::string advice =
          fault.retry_after ? "Retry-After: " + std::to_string(*fault.retry_after) + "\r\n" : std::string();
      if (!fault.content_type.empty()) return respond(fault.status, fault.body, advice, fault.content_type);
      return refuse_request(fault.status, "refused by a fault set through /control", {}, "injected", advice);
    }
    case FaultKind::in_band_error:
      return in_band_error();
    default:
      start_work();
  }
}

void Connection::in_band_error() {
  const std::string error = error_body("failed by a fault set through /control", fault_->type, {}, fault_->type);
  if (!ask_.stream) return respond(200, error);
  append_stream_head(minor_ >= 1, minor_ == 0 || !keep_alive_, out_);
  events_.start(answer_, minor_ >= 1);
  events_.bare(": accepted\n\n", out_);
  events_.bare("data: " + error + "\n\n", out_);
  events_.end(out_);
  keep_alive_ = keep_alive_ && minor_ >= 1;
  settle(Outcome::served);
  next_request();
}

void Connection::start_work() {
  if (endpoint_ == Endpoint::health) return respond(200, R"({"status":"ok"})");
  if (!replica_.profile().paced) {
    if (!ask_.stream) return answer_unary();
    phase_ = Phase::filling;
    return begin_stream();
  }
  phase_ = Phase::working;
  const engine::Profile& profile = replica_.profile();
  engine::Work work{ask_.prompt_tokens, kind_ == Kind::embedding ? 0 : ask_.output_tokens, std::move(ask_.blocks)};
  if (!replica_.engine().fits(work)) {
    const std::string error = error_body(
        "the conversation and its answer are " +
            std::to_string(std::uint64_t{work.prompt_tokens} + work.output_tokens) + " tokens, over the " +
            std::to_string(profile.block_tokens * std::uint64_t{profile.blocks}) + " that there is memory for",
        "invalid_request_error", "messages", "context_length_exceeded");
    return respond(400, error);
  }
  if (kind_ != Kind::embedding)
    engine::add_answer_blocks(work.blocks, profile.block_tokens, ask_.prompt_tokens, ask_.state, ask_.output_tokens);
  key_ = replica_.submit(*this, std::move(work));
  if (key_ != engine::RequestKey::none) return;
  const std::string most = std::to_string(profile.queue_max);
  const std::string error =
      error_body(most + " requests are waiting, at most " + most + " may", "overloaded_error", {}, "queue_full");
  respond(503, error, "Retry-After: 1\r\n");
}

void Connection::on_engine(const engine::EngineEvent& event) {
  const bool ours = phase_ == Phase::working;
  switch (event.what) {
    case engine::EngineEvent::What::prefill_done:
      if (ours && ask_.stream) begin_stream();
      break;
    case engine::EngineEvent::What::token:
      if (ours && ask_.stream) emit_token();
      if (ours && ask_.stream) token_times_.made = event.at;
      break;
    case engine::EngineEvent::What::finished:
      key_ = engine::RequestKey::none;
      if (ours) ask_.stream ? end_stream() : answer_unary();
      break;
  }
}

void Connection::answer_unary() {
  std::string& body = replica_.scratch().body;
  body.clear();
  if (kind_ == Kind::embedding) {
    append_embeddings(ask_, body);
  } else {
    append_body(answer_, body);
  }
  const FaultKind kind = fault_ ? fault_->kind : FaultKind::slow_head;
  if (kind == FaultKind::drip) begin_to_drip();
  if (kind == FaultKind::malformed) return respond(200, std::string_view(body).substr(0, body.size() / 2));
  if (kind == FaultKind::drip || kind == FaultKind::slow_head) return respond(200, body);
  append_head(200, "application/json", body.size(), !keep_alive_, {}, out_);
  out_.append(body, 0, body.size() / 2);
  cut();
}

void Connection::begin_stream() {
  const bool chunked = minor_ >= 1;
  keep_alive_ = keep_alive_ && chunked;
  append_stream_head(chunked, !keep_alive_, out_);
  token_times_ = {};
  events_.start(answer_, chunked);
  if (kind_ == Kind::chat) events_.role(out_);
  strike();
}

void Connection::emit_token() {
  events_.content(answer_, out_);
  strike();
}

// After the head of a stream and after each of its tokens: does its fault come now?
void Connection::strike() {
  if (!fault_ || fault_->after_tokens != answer_.produced) return;
  switch (fault_->kind) {
    case FaultKind::reset:
    case FaultKind::no_done:
    case FaultKind::stall:
      return cut();
    case FaultKind::malformed:
      return events_.bare("data: {\"choices\":[{\"delta\":\n\n", out_);
    case FaultKind::drip:
      return begin_to_drip();
    default:
      return;
  }
}

void Connection::begin_to_drip() {
  drip_.emplace(Drip{.bytes = fault_->bytes, .every = std::chrono::milliseconds(fault_->delay_ms)});
}

void Connection::end_stream() {
  events_.finish(answer_, out_);
  if (ask_.include_usage) events_.usage(answer_, out_);
  events_.bare("data: [DONE]\n\n", out_);
  events_.end(out_);
  settle(Outcome::served);
  next_request();
}

void Connection::fill_stream() {
  while (phase_ == Phase::filling && pending() < output_high) {
    if (answer_.produced == answer_.output_tokens) return end_stream();
    emit_token();
  }
}

// The answer breaks off here, in the way of the fault.
void Connection::cut() {
  if (fault_->kind == FaultKind::stall) {
    phase_ = Phase::silent;
    return;
  }
  settle(Outcome::faulted);
  if (fault_->kind == FaultKind::reset) {
    phase_ = Phase::resetting;
  } else if (ask_.stream) {
    events_.end(out_);
    next_request();
  } else {
    phase_ = Phase::closing;
  }
}

void Connection::respond(std::uint16_t status, std::string_view body, std::string_view headers, std::string_view type) {
  append_head(status, type, body.size(), !keep_alive_, headers, out_);
  if (method_ != "HEAD") out_.append(body);
  if (in_work_) settle(Outcome::served);
  next_request();
}

void Connection::refuse_request(std::uint16_t status, std::string_view message, std::string_view param,
                                std::string_view code, std::string_view headers) {
  respond(status, error_body(message, status >= 500 ? "server_error" : "invalid_request_error", param, code), headers);
}

void Connection::reject(std::uint16_t status, std::string_view message, std::string_view code) {
  keep_alive_ = false;
  method_.clear();
  refuse_request(status, message, {}, code);
}

}  // namespace headgate::mock
