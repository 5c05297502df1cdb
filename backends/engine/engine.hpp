// One model replica as a step machine in virtual time: no clock, no draws, no I/O. The mock server drives it in real
// time, the simulator in virtual time.
//
//   RequestKey key = engine.submit(now, {.prompt_tokens = 120, .output_tokens = 40});
//   ... at engine.next():  engine.advance(now, events);   // what happened up to now, in order
//
// A request enters the waiting queue when its overhead has passed. At the start of each step, as vLLM's scheduler does:
//  1. every running request, the oldest first, gets its next token or the next part of its prompt, while the step has
//     tokens left; one that needs a block of KV memory when there is none takes those of the newest, which goes back
//     to the front of the queue, keeps what it has said and is prefilled anew;
//  2. if none was sent back, the waiting ones (FIFO) join while a slot is free and the blocks of all their text are.
//     Full blocks that are in the cache need not be computed, but for the last token before the answer.
// At its end every request whose text is computed has a token more; the last part of a prompt brings the first one.
// Cancelled requests leave at the end of their step. Late calls do no harm: events keep the times they were due at.
// `now` must not fall.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/engine/block_pool.hpp"
#include "backends/engine/profile.hpp"
#include "policies/base/time.hpp"

namespace headgate::engine {

enum class RequestKey : std::uint64_t { none = 0 };  // place and serial; a stale one is recognised and ignored

// Index for a host's own table of requests: < Engine::places().
constexpr std::uint32_t place_of(RequestKey key) { return static_cast<std::uint32_t>(key); }

struct Work {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t output_tokens = 1;  // 0: prefill only, as for an embedding
  std::vector<TextHash> blocks =
      {};  // of the text up to the end of each block, prompt and answer; empty: not to be cached
};

struct EngineEvent {
  enum class What : std::uint8_t { prefill_done, token, finished };
  What what = What::token;
  RequestKey key = RequestKey::none;
  std::uint32_t index = 0;  // of the token, from 0; of finished: tokens made; of prefill_done: tokens that were cached
  Time at{};
};

struct EngineCounts {  // since the start
  std::uint64_t steps = 0, preemptions = 0;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0;  // of first prefills; cached: part of them
  std::uint64_t output_tokens = 0;
  std::uint64_t in_batches = 0, held_blocks = 0;  // sums over the steps: of requests in each, of blocks held at its end
  Nanos busy{0};

  EngineCounts& operator+=(const EngineCounts& other);
};

class Engine {
 public:
  explicit Engine(const Profile& profile);

  bool fits(const Work& work) const;       // its whole text, in the whole memory
  RequestKey submit(Time now, Work work);  // none: queue_max requests are waiting already, or it never fits
  void cancel(Time now, RequestKey key);   // no event follows
  Time next() const;                       // when advance() will have something to do; never: idle
  void advance(Time now, std::vector<EngineEvent>& out);  // appends

  // Nothing moves from freeze() on; submit() and cancel() may still be called. After thaw() the step under way takes
  // the time it still had to take. Call advance() with the same time before either.
  void freeze(Time now) { frozen_at_ = now; }
  void thaw(Time now);

  void slow_down(double factor) { slowness_ = factor; }  // of the steps that begin from now on; 1: as the profile says
  void use_slots(std::uint32_t slots) { slots_ = std::min(slots, profile_.slots); }  // those running stay
  void forget_cache() { pool_.forget(); }

  std::uint32_t running() const { return static_cast<std::uint32_t>(running_.size()); }
  std::uint32_t waiting() const { return waiting_.size + arriving_.size; }
  std::uint32_t places() const { return places_; }
  std::uint32_t batch() const { return batch_; }  // requests in the step under way
  const BlockPool& memory() const { return pool_; }
  std::uint32_t slots() const { return slots_; }
  const EngineCounts& counts() const { return counts_; }
  const Profile& profile() const { return profile_; }

 private:
  enum class Phase : std::uint8_t { free, arriving, waiting, running };
  static constexpr std::uint32_t nil = 0xffffffffu;
  struct Record {
    std::uint32_t serial = 0;  // of its present use; 0 is never given out
    Phase phase = Phase::free;
    bool cancelled = false;
    bool preempted = false;      // before now: what it computes again is counted as no prompt
    std::uint32_t chunk = 0;     // tokens of it in the step under way
    std::uint32_t computed = 0;  // tokens whose KV is in its blocks
    std::uint32_t produced = 0;  // tokens of the answer
    std::uint32_t labelled = 0;  // blocks that others may share
    std::uint32_t cached = 0;    // tokens it did not have to compute, at its last start
    Time arrived{};
    Work work;
    std::vector<BlockId> blocks;
    std::uint32_t before = nil, behind = nil;  // in the list of its phase

    std::uint32_t known() const { return work.prompt_tokens + produced; }
    bool decodes() const { return computed + 1 == known() && produced > 0; }
  };
  struct List {
    std::uint32_t first = nil, last = nil, size = 0;
  };

  RequestKey key_of(std::uint32_t place) const;
  List& list_of(Phase phase);
  void append(std::uint32_t place, Phase phase);
  void prepend(std::uint32_t place, Phase phase);
  void unlink(std::uint32_t place);
  void release(std::uint32_t place);
  void give_blocks(Record& record);
  std::uint32_t blocks_for(std::uint32_t tokens) const;
  bool grow(std::uint32_t place, std::uint32_t tokens);
  void preempt_newest();
  bool start(std::uint32_t place);
  void arrive(Time at);
  void start_step(Time at);
  Nanos step_time(std::uint64_t context, std::uint32_t prefilled) const;
  void end_step(Time at, std::vector<EngineEvent>& out);
  void end_of(std::uint32_t place, Time at, std::vector<EngineEvent>& out);
  void label_full_blocks(Record& record);

  Profile profile_;
  BlockPool pool_;
  std::uint32_t places_;         // slots + queue_max
  std::vector<Record> records_;  // of the places that were ever used
  List free_, arriving_, waiting_;
  std::vector<std::uint32_t> running_, still_running_;  // the oldest first
  std::uint32_t batch_ = 0;
  std::uint32_t slots_;  // of the profile's, in use
  double slowness_ = 1;
  Time step_began_ = never, step_ends_ = never;
  Time frozen_at_ = never;  // never: it runs
  EngineCounts counts_;
};

}  // namespace headgate::engine
