// What one request holds inside the Dispatcher: a unit in flight (stage running), or a place in queues or on the clock
// (waiting, delayed). Given back once, by the transition that leaves the stage. Records live in a table of slots; a
// RequestId names slot and serial, so that one that outlived its request is recognised.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "policies/calls.hpp"
#include "policies/orders.hpp"
#include "policies/pool_choice.hpp"
#include "policies/queue.hpp"
#include "policies/token_estimator.hpp"

namespace headgate::policies {

enum class Stage : std::uint8_t {
  free,
  waiting,  // linked into queues
  delayed,  // will try again at `retry_at`
  running,  // an attempt is out
};

struct Record {
  RequestId id = RequestId::none;
  Stage stage = Stage::free;
  Lane lane = Lane::fresh;
  Why why = Why::first;  // of the next start
  Code fallback{};       // what the caller gets if no further attempt follows; of a request that has failed
  bool stream = false, repeat = false;
  bool committed = false;  // content has been relayed
  bool gone = false;       // the caller left while an attempt is out
  bool trial = false;      // the attempt out is its endpoint's half-open request
  bool free_retry_used = false;
  std::uint8_t attempts = 0, waits_alone = 0;
  std::uint8_t tried_n = 0, links_n = 0;
  Owner owner;
  std::uint32_t route = 0;
  std::uint32_t pool = 0, endpoint = 0;          // of the attempt out
  std::array<std::uint32_t, 8> tried{};          // endpoints not to use again; beyond 8 the oldest is forgotten
  std::array<std::uint32_t, pools_max> links{};  // pools it is queued in
  std::uint32_t tenant = 0;
  Class klass = Class::interactive;
  std::uint32_t raw_prompt_tokens = 0, choices = 1;  // as the arrival said
  TokenEstimate estimate;
  std::uint32_t output_most = 0;  // tokens, as far as a cost is promised
  PoolWish wish;
  PoolRanking ranking;    // of its route's pools
  Time patience = never;  // until then it waits for the first of them; never: a budget decides
  std::uint64_t reserved_tokens = 0;
  bool taken = false;                            // of its tenant's limits
  bool by_newest = false;                        // it came to a queue that is late
  std::uint64_t used_tokens = 0, used_cost = 0;  // by its attempts; cost: output counts double
  FairQueue::Charge charge;                      // in the queue of pool `charged_in`
  std::uint32_t charged_in = 0;
  std::uint32_t prefilling = 0;  // of them, counted at the endpoint of the attempt out until its first content
  std::uint64_t body_bytes = 0;
  std::uint64_t ticket = 0;  // order of queueing
  Time received{}, deadline{}, head_by{};
  Time total_by = never;  // as a budget says, without the route's timeouts
  Time first_token_by{};
  Time content_by{};  // while it waits; of what has been tried, head_by
  Nanos idle_within{};
  Time started_at{}, content_at{}, queued_at{}, wait_by{};

  std::span<const std::uint32_t> not_these() const { return std::span(tried).first(tried_n); }
  std::span<const std::uint32_t> pools() const { return std::span(ranking.pools).first(ranking.n); }
  template <class A>
  void image(A& a) {
    a(id, stage, lane, why, fallback, stream, repeat, committed, gone, trial, free_retry_used, attempts, waits_alone,
      tried_n, links_n, owner.shard, owner.slot, route, pool, endpoint, tried, links, tenant, klass, raw_prompt_tokens,
      choices, estimate.input, estimate.output_q50, estimate.output_q90, output_most, wish, ranking.pools, ranking.n,
      ranking.second_later, patience, reserved_tokens, taken, by_newest, used_tokens, used_cost, charge, charged_in,
      prefilling, body_bytes, ticket, received, deadline, head_by, total_by, first_token_by, content_by, idle_within,
      started_at, content_at, queued_at, wait_by);
  }
};

class Records {
 public:
  static constexpr std::uint32_t none = ~0u;
  static constexpr std::uint32_t slots_max = 1u << 24;

  // none: the table is full.
  std::uint32_t take() {
    std::uint32_t slot = free_;
    if (slot != none) {
      free_ = next_free_[slot];
    } else {
      if (records_.size() == slots_max) return none;
      slot = static_cast<std::uint32_t>(records_.size());
      records_.emplace_back();
      next_free_.push_back(none);
    }
    ++serial_;
    ++in_use_;
    records_[slot] = Record{};
    records_[slot].id = RequestId{serial_ << slot_bits | slot};
    return slot;
  }
  void give_back(std::uint32_t slot) {
    records_[slot].id = RequestId::none;
    records_[slot].stage = Stage::free;
    next_free_[slot] = free_;
    free_ = slot;
    --in_use_;
  }

  std::uint32_t find(RequestId id) const {
    const auto slot = static_cast<std::uint32_t>(static_cast<std::uint64_t>(id) & (slots_max - 1));
    return id != RequestId::none && slot < records_.size() && records_[slot].id == id ? slot : none;
  }
  static std::uint64_t serial(RequestId id) { return static_cast<std::uint64_t>(id) >> slot_bits; }

  Record& operator[](std::uint32_t slot) { return records_[slot]; }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(records_.size()); }
  std::uint32_t in_use() const { return in_use_; }
  template <class A>
  void image(A& a) {
    a(records_, next_free_, free_, in_use_, serial_);
  }

 private:
  static constexpr int slot_bits = 24;

  std::vector<Record> records_;
  std::vector<std::uint32_t> next_free_;
  std::uint32_t free_ = none;
  std::uint32_t in_use_ = 0;
  std::uint64_t serial_ = 0;
};

}  // namespace headgate::policies
