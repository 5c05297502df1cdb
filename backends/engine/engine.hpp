// One model replica as a step machine in virtual time: no clock, no draws, no I/O. The mock server drives it in real
// time, the simulator in virtual time.
//
//   RequestKey key = engine.submit(now, {.prompt_tokens = 120, .output_tokens = 40});
//   ... at engine.next():  engine.advance(now, events);   // what happened up to now, in order
//
// A request waits (FIFO) for one of `slots`, is prefilled (one prompt at a time, FIFO), joins the batch when the next
// step starts, gets one token at each step's end, and gives its slot back with its last token, when the first waiting
// request takes it. A step never waits for a prefill; one that ends at the same instant is counted first.
// Late calls do no harm: events keep the times they were due at. `now` must not fall.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/engine/profile.hpp"
#include "policies/base/time.hpp"

namespace headgate::engine {

enum class RequestKey : std::uint64_t { none = 0 };  // place and serial; a stale one is recognised and ignored

// Index for a host's own table of requests: < Engine::places().
constexpr std::uint32_t place_of(RequestKey key) { return static_cast<std::uint32_t>(key); }

struct Work {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t output_tokens = 1;  // 0: prefill only, as for an embedding
};

struct EngineEvent {
  enum class What : std::uint8_t { prefill_done, token, finished };
  What what = What::token;
  RequestKey key = RequestKey::none;
  std::uint32_t index = 0;  // of the token, from 0; of finished: tokens made
  Time at{};
};

class Engine {
 public:
  explicit Engine(const Profile& profile);

  RequestKey submit(Time now, const Work& work);          // none: queue_max requests are waiting already
  void cancel(Time now, RequestKey key);                  // gives its place back at once; no event follows
  Time next() const;                                      // when advance() will have something to do; never: idle
  void advance(Time now, std::vector<EngineEvent>& out);  // appends

  std::uint32_t running() const { return running_; }  // holding a slot
  std::uint32_t waiting() const { return waiting_.size; }
  std::uint32_t places() const { return static_cast<std::uint32_t>(records_.size()); }
  const Profile& profile() const { return profile_; }

 private:
  enum class Phase : std::uint8_t { free, waiting, prefill, decoding };
  static constexpr std::uint32_t nil = 0xffffffffu;
  struct Record {
    std::uint32_t serial = 0;  // of its present use; 0 is never given out
    Phase phase = Phase::free;
    bool in_step = false;  // was decoding when the present step started
    std::uint32_t produced = 0;
    Work work;
    Time arrived{};
    std::uint32_t before = nil, behind = nil;  // in the list of its phase
  };
  struct List {
    std::uint32_t first = nil, last = nil, size = 0;
  };

  RequestKey key_of(std::uint32_t place) const;
  List& list_of(Phase phase);
  void link(std::uint32_t place, Phase phase);
  void unlink(std::uint32_t place);
  void release(std::uint32_t place);
  void admit(Time at);
  void start_prefill(Time at);
  void end_prefill(Time at, std::vector<EngineEvent>& out);
  void start_step(Time at);
  void end_step(Time at, std::vector<EngineEvent>& out);

  Profile profile_;
  std::vector<Record> records_;  // slots + queue_max
  List free_, waiting_, prefill_, decoding_;
  std::uint32_t running_ = 0;
  Time prefill_ends_ = never, step_ends_ = never;
};

}  // namespace headgate::engine
