// One caller's connection to a mock replica: reads requests, answers them in order, keeps alive. Its coroutine only
// waits; step() does what can be done now, and everything that happens (bytes, the peer's end, the engine, an alarm)
// leaves a mark here and wakes it.
// Bounds: head 64 KiB, body 64 MiB, one request in work (a pipelined one stays unread in the buffer), 1 MiB of a stream
// that the peer doesn't read; beyond that the peer counts as dead and its work is cancelled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/engine/engine.hpp"
#include "backends/io/body_reader.hpp"
#include "backends/io/link.hpp"
#include "backends/io/waker.hpp"
#include "backends/io/wheel.hpp"
#include "backends/mock/answer.hpp"
#include "backends/mock/faults.hpp"
#include "backends/mock/itl_error.hpp"
#include "backends/mock/request.hpp"
#include "backends/wire/head.hpp"

namespace headgate::mock {

class Replica;

inline constexpr std::size_t output_high = 64 << 10;  // nothing more is made while this much waits to be sent

enum class Listener : std::uint8_t { data, control };  // control: /control and /health only

class Connection {
 public:
  Connection(Replica& replica, int fd, Listener listener);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool step();  // false: the connection is over
  backends::Waker& waker() { return waker_; }

  // The replica's: events of the work submitted under key(); wake the coroutine afterwards.
  void on_engine(const engine::EngineEvent& event);
  engine::RequestKey key() const { return key_; }
  std::optional<std::uint64_t>& place_in_outbox() { return place_in_outbox_; }  // the Outbox's
  Listener listener() const { return listener_; }
  void stop();

 private:
  enum class Phase : std::uint8_t {
    reading,    // the next request
    delayed,    // by slow_head
    working,    // in the engine
    filling,    // an unpaced stream, as fast as it is read
    silent,     // hang, stall
    closing,    // flush, FIN, wait for the peer's
    resetting,  // flush, RST
  };
  enum class Endpoint : std::uint8_t {
    chat,
    completions,
    embeddings,
    models,
    model,
    health,
    metrics,
    control,
    unknown
  };
  enum class Outcome : std::uint8_t { served, cancelled, faulted };

  bool read_request();  // false: more bytes are needed
  bool read_head();
  void take_head(const wire::RequestHead& head);
  void handle(std::string_view body);
  void handle_get();
  void handle_control(std::string_view body);
  void begin(Kind kind, std::string_view body);
  void apply(const Fault& fault);
  void start_work();
  void answer_unary();
  void begin_stream();
  void emit_token();
  void end_stream();
  void fill_stream();
  void cut();
  void in_band_error();
  void strike();
  void begin_to_drip();

  void respond(std::uint16_t status, std::string_view body, std::string_view headers = {},
               std::string_view type = "application/json");
  void refuse_request(std::uint16_t status, std::string_view message, std::string_view param, std::string_view code,
                      std::string_view headers = {});
  void reject(std::uint16_t status, std::string_view message, std::string_view code);  // and close
  void next_request();  // or close, when the caller does not keep alive
  void settle(Outcome outcome);
  bool flush();
  std::size_t may_send();
  void note_token_written();
  std::size_t pending() const { return out_.size() - sent_; }
  void arm();

  Replica& replica_;
  backends::Waker waker_;
  backends::LinkPtr link_;
  backends::Alarm alarm_;
  Listener listener_;
  Phase phase_ = Phase::reading;
  bool due_ = false;      // the alarm rang
  bool shut_ = false;     // FIN sent
  bool in_work_ = false;  // counted as open
  std::optional<std::uint64_t> place_in_outbox_;

  // Of the request being read or answered.
  bool have_head_ = false, keep_alive_ = true, continue_due_ = false;
  std::uint8_t minor_ = 1;
  Endpoint endpoint_ = Endpoint::unknown;
  std::string method_, model_name_;  // model_name_: of GET /v1/models/{id}
  backends::BodyReader body_;
  Kind kind_ = Kind::chat;
  Ask ask_;
  Answer answer_;
  EventWriter events_;
  std::optional<Fault> fault_;
  engine::RequestKey key_ = engine::RequestKey::none;

  TokenTimes token_times_;
  std::string out_;  // to be sent, from sent_ on
  std::size_t sent_ = 0;
  struct Drip {
    std::size_t bytes = 0, left = 0;  // left: that may go before `again`
    Nanos every{0};
    Time again{};
  };
  std::optional<Drip> drip_;  // none: all may go
};

}  // namespace headgate::mock
