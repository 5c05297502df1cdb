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
using backends::Link;

constexpr std::size_t head_max = 64 << 10, body_max = 64 << 20;
constexpr std::size_t unread_max = 1 << 20;  // of a stream
constexpr std::size_t read_room = 4096;
constexpr Nanos farewell = 2s;  // for the peer's FIN after ours

}  // namespace

Connection::Connection(Replica& replica, int fd, Listener listener)
    : replica_(replica),
      link_(Link::adopt(replica.loop(), replica.scratch().buffers, fd)),
      alarm_(replica.scratch().wheel,
             [this] {
               due_ = true;
               waker_.wake();
             }),
      listener_(listener) {
  link_->owner(&waker_);
}

Connection::~Connection() {
  replica_.scratch().outbox.remove(*this);
  if (in_work_) settle(Outcome::cancelled);
}

void Connection::stop() {
  if (in_work_) settle(Outcome::faulted);
  link_->close();
  waker_.wake();
}

bool Connection::step() {
  for (bool busy = true; busy;) {
    busy = false;
    if (link_->ended() || !flush()) return false;
    if (phase_ == Phase::reading && !drip_ && pending() < output_high) busy = read_request();
    if (phase_ == Phase::delayed && std::exchange(due_, false)) {
      start_work();
      busy = true;
    }
    if (phase_ == Phase::filling && pending() < output_high) {
      fill_stream();
      busy = true;
    }
    if (busy) continue;
    if (!flush()) return false;
    // Its reader may have made room since the flush above: then nothing would wake it.
    busy = phase_ == Phase::filling && pending() < output_high;
  }
  if (pending() != 0) {
    if (drip_ && drip_->left == 0) {
      alarm_.set(drip_->again);
    } else if (in_work_ && ask_.stream && !drip_ && pending() > unread_max) {
      link_->reset();
      return false;
    } else {
      link_->await_writable();
    }
  } else if (phase_ == Phase::resetting) {
    link_->reset();
    return false;
  } else if (phase_ == Phase::closing) {
    if (due_) return false;
    if (!std::exchange(shut_, true)) {
      link_->shut_down();
      alarm_.set(after(std::chrono::steady_clock::now(), farewell));
    }
  }
  arm();
  return true;
}

// Always, so that a caller who leaves is noticed, except while a pipelined request waits its turn.
void Connection::arm() {
  Buffer& in = link_->in();
  if (phase_ == Phase::closing) in.clear();
  const bool takes_more = phase_ == Phase::reading && !drip_ && pending() < output_high;
  if (!takes_more && !in.empty()) return;
  if (!in.empty() && in.room() < read_room) in.reserve(std::max(read_room, in.size()));
  link_->arm();
}

bool Connection::flush() {
  if (pending() == 0) return true;
  if (link_->awaiting_writable()) return !link_->write_failed();
  const std::size_t most = may_send();
  if (most == 0) return !link_->write_failed();
  const backends::Piece piece(out_.data() + sent_, most);
  const std::size_t written = link_->write_some({&piece, 1});
  sent_ += written;
  if (drip_) drip_->left -= written;
  if (pending() == 0) {
    if (token_times_.made != Time() && !drip_) note_token_written();
    out_.clear();
    sent_ = 0;
    if (drip_ && !in_work_) {
      drip_.reset();
      due_ = false;
    }
    if (out_.capacity() > 2 * output_high) out_.shrink_to_fit();
  }
  return !link_->write_failed();
}

std::size_t Connection::may_send() {
  if (!drip_) return pending();
  const Time now = std::chrono::steady_clock::now();
  if (drip_->left == 0 && now >= drip_->again) {
    drip_->left = drip_->bytes;
    drip_->again = after(now, drip_->every);
  }
  return std::min(pending(), drip_->left);
}

void Connection::note_token_written() {
  const Time now = std::chrono::steady_clock::now();
  TokenTimes& times = token_times_;
  if (times.made_before != Time())
    replica_.itl_errors().gap(times.made - times.made_before, now - times.written_before);
  times = {.made = {}, .made_before = times.made, .written_before = now};
}

bool Connection::read_request() {
  Buffer& in = link_->in();
  if (in.empty() && !have_head_) return false;
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
  } else if (path == "/metrics") {
    endpoint_ = Endpoint::metrics;
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
  if (endpoint_ == Endpoint::metrics) {
    return respond(200, replica_.metrics_page(), {}, "text/plain; version=0.0.4");
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
  if (!replica_.obey(std::move(control), this, problem)) return refuse_request(500, problem, {}, "listen_failed");
  respond(200, replica_.print());
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
