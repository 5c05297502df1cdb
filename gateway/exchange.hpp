// One caller's connection and the request it is being served: the state that the steps of a request share. A connection
// is one coroutine (connection.cpp); everything that can happen to it sets a flag somewhere and wakes it.
#pragma once

#include <array>
#include <string>

#include "backends/io/body_reader.hpp"
#include "backends/io/link.hpp"
#include "backends/io/task.hpp"
#include "backends/io/wheel.hpp"
#include "backends/wire/head.hpp"
#include "backends/wire/json_skim.hpp"
#include "backends/wire/splice.hpp"
#include "backends/wire/sse_scan.hpp"
#include "gateway/body_memory.hpp"
#include "gateway/keys.hpp"
#include "gateway/shard.hpp"

namespace headgate::gateway {

enum class Operation : std::uint8_t { chat, completions, embeddings, models, model, preflight, healthz, readyz };

// A backend's answer that failed the attempt but is what the caller gets if no other comes.
struct LastAnswer {
  std::uint16_t status = 0;
  std::string lines;   // header lines to pass on
  std::string advice;  // those of them that go with a message of ours too
  std::string body;
  bool presentable = false;  // whole, JSON, names nothing that callers may not see
};

// What the caller's headers ask for; Nanos::max() and never: nothing.
struct Budgets {
  Time deadline = never, content_by = never;
  double max_cost_usd = policies::unlimited_usd, min_quality = 0;
  policies::Class klass = policies::Class::interactive;
  Nanos timeout = Nanos::max(), read_timeout = Nanos::max();  // the SDKs'
  bool repeat = false;                                        // the SDK's own retry
};

// A time limit that a backend did not keep.
struct PassedLimit {
  std::string_view name;
  Nanos limit{0}, waited{0};
};

// What one request has learnt on its way; reset for the next on the same connection.
struct RequestState {
  Time received{};    // first byte
  Time arrived{};     // at the Dispatcher
  Time dispatched{};  // first Start; zero: none
  Time content_at{};  // first content written to the caller; zero: none
  Operation operation{};
  Caller caller;
  Budgets budgets;
  std::shared_ptr<const config::Catalog> catalog;
  std::string_view client;         // address: the connection's, or the one a trusted proxy names
  std::string_view page_may_read;  // the configured origin that the answer names; empty: none
  const config::Route* route = nullptr;
  wire::Skim skim;
  policies::RequestId id = policies::RequestId::none;
  policies::RateState rates;                     // of its tenant, when it came
  std::shared_ptr<const config::Target> target;  // of the last attempt
  std::uint32_t attempts = 0;
  policies::Outcome outcome;  // of the last attempt
  PassedLimit passed;         // where that outcome is lateness
  LastAnswer last;
  bool head_sent = false, content_sent = false, finished = false;
  bool event_stream = false, chunked_out = false;  // the answer whose head was sent
  bool error_event_sent = false;
  bool inside_event = false;  // of an event that is too long to wait for, only a part has been sent
  std::uint16_t status = 0;
  std::uint64_t bytes_out = 0;
  std::uint32_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;
  bool usage_reported = false;
  Ending ending = Ending::ok;
  std::string_view cause;
  std::string cause_detail;  // text behind a refusal's views
};

// Room that a large text took is not kept for the next one.
inline void shed(std::string& text) {
  constexpr std::size_t kept_max = 64 << 10;
  if (text.capacity() > kept_max) std::string().swap(text);
}

// Drops the first n bytes from the front of the pieces.
std::span<backends::Piece> without_front(std::span<backends::Piece> pieces, std::size_t n);

// The other end of a caller's connection.
struct Peer {
  backends::IpAddress address;
  std::string text;  // of the address
};

struct Exchange {
  Exchange(Shard& shard_, backends::LinkPtr link, Peer peer_)
      : shard(shard_),
        caller(std::move(link)),
        alarm(shard_.wheel, [this] { waker.wake(); }),
        peer(std::move(peer_)),
        body_hold(shard_.shared.bodies) {
    caller->owner(&waker);
    slot = shard.enroll(*this);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() { shard.leave(slot); }

  Shard& shard;
  backends::Waker waker;  // before what wakes it
  backends::LinkPtr caller;
  backends::Alarm alarm;
  std::uint32_t slot = 0;
  bool stopping = false;     // cut_all(): end what runs
  bool close_after = false;  // after this answer
  bool idle = true;          // between requests
  Time idle_since = shard.now();

  const Peer peer;
  wire::HeadReader reader;
  wire::RequestHead head;
  backends::BodyReader body;
  wire::Splice splice;
  KeyMemo key_memo;
  Inbox inbox;
  std::uint64_t ticket = 0;                        // waits for a connection under a backend's cap; 0: does not
  std::shared_ptr<backends::Link::Moving> moving;  // what has come for it
  RequestState request;
  BodyMemory::Hold body_hold;  // before the key that it counts for goes
  std::string named_client;    // by a trusted proxy
  std::string request_id;      // reused by the next request, as are the texts below
  std::string out;             // to the caller: a head, or a whole answer of ours
  std::string upstream_head;   // to the backend
  wire::HeadReader answer_reader;
  wire::EventReader event_reader;
  std::string relayed_lines;  // of the backend's head

  policies::Owner owner() const { return {shard.number, slot}; }
  std::string_view body_text() { return body.data(caller->in()); }

  // The caller left, or the host stops.
  bool abandoned() const { return caller->peer_ended() || stopping; }

  // Waits for the next event, or until `until`. Spurious returns are normal: look at the flags.
  auto pause(Time until) {
    alarm.set(until);
    caller->arm();
    return waker.wait();
  }

  // Writes pieces to the caller. False: it left, took nothing for limits.write_stall or not all by `until`, or the host
  // stops.
  backends::Task<bool> send(std::span<backends::Piece> pieces, Time until = never);
  // As much of it as goes at once, and leaves the rest in `pieces`. True: all went.
  bool send_now(std::span<backends::Piece>& pieces);

 private:
  backends::Task<bool> send_waiting(std::span<backends::Piece> pieces, Time until);
};

}  // namespace headgate::gateway
