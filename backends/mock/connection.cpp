#include "backends/mock/connection.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "backends/mock/control.hpp"
#include "backends/mock/replica.hpp"

namespace headgate::mock {
namespace {

using namespace std::chrono_literals;
using backends::Buffer;
using backends::BufferPool;
using backends::Link;

constexpr std::size_t head_max = 64 << 10, body_max = 64 << 20;
constexpr std::size_t unread_max = 1 << 20;    // of a stream
constexpr std::size_t output_high = 64 << 10;  // nothing more is made while this much waits to be sent
constexpr std::size_t read_room = 4096;
constexpr Nanos farewell = 2s;  // for the peer's FIN after ours

Time now() { return std::chrono::steady_clock::now(); }

}  // namespace

Connection::Connection(Replica& replica, backends::Socket socket, Listener listener)
    : replica_(replica),
      link_(Link::adopt(std::move(socket), replica.scratch().buffers)),
      alarm_(replica.scratch().wheel,
             [this] {
               due_ = true;
               waker_.wake();
             }),
      listener_(listener) {
  link_->owner(&waker_);
}

Connection::~Connection() {
  if (in_work_) settle(Outcome::cancelled);
}

void Connection::stop() {
  link_->close();
  waker_.wake();
}

bool Connection::step() {
  touched_ = false;
  for (bool busy = true; busy;) {
    busy = false;
    if (link_->ended() || !flush()) return false;
    if (phase_ == Phase::reading && pending() < output_high) busy = read_request();
    if (phase_ == Phase::delayed && std::exchange(due_, false)) {
      start_work();
      busy = true;
    }
    if (phase_ == Phase::filling && pending() < output_high) {
      fill_stream();
      busy = true;
    }
  }
  if (!flush()) return false;
  if (pending() != 0) {
    if (in_work_ && ask_.stream && pending() > unread_max) {
      link_->reset();
      return false;
    }
    link_->await_writable();
  } else if (phase_ == Phase::resetting) {
    link_->reset();
    return false;
  } else if (phase_ == Phase::closing) {
    if (due_) return false;
    if (!std::exchange(shut_, true)) {
      link_->shut_down();
      alarm_.set(after(now(), farewell));
    }
  }
  arm();
  return true;
}

// A read is always pending, so that a caller who leaves is noticed, except while a pipelined request waits its turn.
void Connection::arm() {
  Buffer& in = link_->in();
  if (link_->reading()) return;
  if (phase_ == Phase::closing) in.clear();
  if (phase_ != Phase::reading && !in.empty()) return;
  if (in.room() < read_room) in.reserve(std::max(read_room, in.size()));
  link_->arm();
}

bool Connection::flush() {
  if (pending() == 0) return true;
  if (link_->awaiting_writable()) return !link_->write_failed();
  const backends::asio::const_buffer piece(out_.data() + sent_, pending());
  sent_ += link_->write_some({&piece, 1});
  if (pending() == 0) {
    out_.clear();
    sent_ = 0;
    if (out_.capacity() > 2 * output_high) out_.shrink_to_fit();
  }
  return !link_->write_failed();
}

bool Connection::read_request() {
  Buffer& in = link_->in();
  // While a read is pending the buffer must stay in place; what it brings wakes us again.
  if (link_->reading() || (in.empty() && !have_head_)) return false;
  if (!have_head_ && !read_head()) return false;
  body_.pull(in);
  if (body_.bad()) {
    reject(400, "the chunked body is malformed", "invalid_body");
    return false;
  }
  if (body_.size() > body_max) {
    reject(413, "the body is over " + std::to_string(body_max) + " bytes", "body_too_large");
    return false;
  }
  if (!body_.done()) {
    if (std::exchange(continue_due_, false)) out_.append("HTTP/1.1 100 Continue\r\n\r\n");
    return false;
  }
  have_head_ = false;
  handle(body_.data(in));
  in.consume(body_.size());
  return true;
}

bool Connection::read_head() {
  Buffer& in = link_->in();
  wire::HeadReader& heads = replica_.scratch().heads;
  wire::RequestHead head;
  heads.reset();
  switch (heads.request(in.view(), head)) {
    case wire::Read::incomplete:
      if (in.size() > head_max) reject(431, "the head is over 65536 bytes", "headers_too_large");
      return false;
    case wire::Read::bad:
      reject(400, wire::describe(heads.error()), "invalid_request");
      return false;
    case wire::Read::complete:
      break;
  }
  if (head.framing == wire::Framing::length && head.content_length > body_max) {
    reject(413, "the body is over " + std::to_string(body_max) + " bytes", "body_too_large");
    return false;
  }
  take_head(head);
  in.consume(head.bytes);
  return true;
}

void Connection::take_head(const wire::RequestHead& head) {
  have_head_ = true;
  keep_alive_ = head.keep_alive;
  continue_due_ = head.expect_continue;
  minor_ = head.minor;
  method_ = head.method;
  std::string_view path = head.target.substr(0, head.target.find('?'));
  if (path == "/v1/chat/completions") {
    endpoint_ = Endpoint::chat;
  } else if (path == "/v1/completions") {
    endpoint_ = Endpoint::completions;
  } else if (path == "/v1/embeddings") {
    endpoint_ = Endpoint::embeddings;
  } else if (path == "/v1/models") {
    endpoint_ = Endpoint::models;
  } else if (path.starts_with("/v1/models/")) {
    endpoint_ = Endpoint::model;
    model_name_ = path.substr(11);
  } else if (path == "/health") {
    endpoint_ = Endpoint::health;
  } else {
    endpoint_ = path == "/control" ? Endpoint::control : Endpoint::unknown;
  }
  if (listener_ == Listener::control && endpoint_ != Endpoint::control && endpoint_ != Endpoint::health) {
    endpoint_ = Endpoint::unknown;
  }
  body_.start(head.framing, head.content_length, 0);
}

void Connection::handle(std::string_view body) {
  const bool post = method_ == "POST", get = method_ == "GET";
  const bool wants_post = endpoint_ <= Endpoint::embeddings;
  if (endpoint_ == Endpoint::unknown) {
    refuse_request(404, "unknown path", {}, "not_found");
  } else if (endpoint_ == Endpoint::control ? !post && !get : wants_post ? !post : !get) {
    const bool both = endpoint_ == Endpoint::control;
    refuse_request(405, "method " + method_ + " is not allowed here", {}, "method_not_allowed",
                   both         ? "Allow: GET, POST\r\n"
                   : wants_post ? "Allow: POST\r\n"
                                : "Allow: GET\r\n");
  } else if (endpoint_ == Endpoint::control) {
    handle_control(post ? body : std::string_view{});
  } else if (wants_post) {
    static_assert(static_cast<int>(Endpoint::embeddings) == static_cast<int>(Kind::embedding));
    begin(static_cast<Kind>(endpoint_), body);
  } else {
    handle_get();
  }
}

void Connection::handle_get() {
  const std::vector<std::string> any{"mock"};
  const std::vector<std::string>& named = replica_.options().models;
  if (endpoint_ == Endpoint::health) {
    ask_.stream = false;
    fault_ = listener_ == Listener::data && !replica_.faults().faults().empty()
                 ? replica_.faults().pick(replica_.next_request(), true)
                 : std::nullopt;
    if (fault_) return apply(*fault_);
    return respond(200, R"({"status":"ok"})");
  }
  if (endpoint_ == Endpoint::models) return respond(200, models_body(named.empty() ? any : named));
  if (named.empty() || std::find(named.begin(), named.end(), model_name_) != named.end()) {
    return respond(200, model_body(model_name_));
  }
  refuse_request(404, "the model '" + model_name_ + "' does not exist", "model", "model_not_found");
}

void Connection::handle_control(std::string_view body) {
  if (method_ == "GET") return respond(200, replica_.print());
  Control control = read_control(body);
  if (const auto* error = std::get_if<ControlError>(&control)) {
    return refuse_request(400, error->message, error->param, "invalid_control");
  }
  std::string problem;
  if (!replica_.obey(std::move(control), problem)) return refuse_request(500, problem, {}, "listen_failed");
  respond(200, replica_.print());
}

void Connection::begin(Kind kind, std::string_view body) {
  kind_ = kind;
  in_work_ = true;
  ++replica_.state().open;
  const std::uint64_t serial = replica_.next_request();
  RequestReader& requests = replica_.scratch().requests;
  if (!requests.read(kind, body, BufferPool::padding, ask_)) {
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
      alarm_.set(after(now(), std::chrono::milliseconds(fault.delay_ms)));
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
  const engine::Work work{ask_.prompt_tokens, kind_ == Kind::embedding ? 0 : ask_.output_tokens};
  key_ = replica_.submit(*this, work);
  if (key_ != engine::RequestKey::none) return;
  const std::string most = std::to_string(replica_.profile().queue_max);
  const std::string error =
      error_body(most + " requests are waiting, at most " + most + " may", "overloaded_error", {}, "queue_full");
  respond(503, error, "Retry-After: 1\r\n");
}

void Connection::on_engine(const engine::EngineEvent& event) {
  touched_ = true;
  const bool ours = phase_ == Phase::working;
  switch (event.what) {
    case engine::EngineEvent::What::prefill_done:
      if (ours && ask_.stream) begin_stream();
      break;
    case engine::EngineEvent::What::token:
      if (ours && ask_.stream) emit_token();
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
  if (!fault_ || fault_->kind == FaultKind::slow_head) return respond(200, body);
  append_head(200, "application/json", body.size(), !keep_alive_, {}, out_);
  out_.append(body, 0, body.size() / 2);
  cut();
}

void Connection::begin_stream() {
  const bool chunked = minor_ >= 1;
  keep_alive_ = keep_alive_ && chunked;
  append_stream_head(chunked, !keep_alive_, out_);
  events_.start(answer_, chunked);
  if (kind_ == Kind::chat) events_.role(out_);
  if (fault_ && fault_->kind != FaultKind::slow_head && fault_->after_tokens == 0) cut();
}

void Connection::emit_token() {
  events_.content(answer_, out_);
  if (fault_ && fault_->kind != FaultKind::slow_head && fault_->after_tokens == answer_.produced) cut();
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

void Connection::next_request() {
  phase_ = keep_alive_ ? Phase::reading : Phase::closing;
  due_ = false;
}

void Connection::settle(Outcome outcome) {
  in_work_ = false;
  replica_.cancel(key_);
  key_ = engine::RequestKey::none;
  ReplicaState& state = replica_.state();
  --state.open;
  ++(outcome == Outcome::served ? state.served : outcome == Outcome::cancelled ? state.cancelled : state.faulted);
}

}  // namespace headgate::mock
