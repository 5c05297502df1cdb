// What is kept of a request only while it is on its way, by request number: memory for those at once, not for all.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "backends/engine/engine.hpp"
#include "policies/calls.hpp"

namespace headgate::loadtest {

struct RequestUnderway {
  policies::RequestId id = policies::RequestId::none;  // at the Dispatcher
  policies::AttemptId attempt;
  std::uint32_t serial = 0;  // of its present attempt
  std::uint32_t endpoint = 0;
  bool started = false;                        // an attempt, since it was sent
  bool attempting = false, committed = false;  // committed: the caller has seen content
  Time sent{};
  engine::RequestKey key = engine::RequestKey::none;
  Time first_token_by = never, end_by = never;
  Nanos idle = Nanos::max();
  Time silence_checked = never;  // when it is looked for next
  policies::Outcome outcome;     // of its last attempt
};

class Underway {
 public:
  explicit Underway(std::size_t requests) : place_(requests, none) {}

  RequestUnderway* find(std::uint32_t request) {  // null: it is not on its way
    return place_[request] == none ? nullptr : &items_[place_[request]];
  }
  RequestUnderway& operator[](std::uint32_t request) {  // from here on it is
    if (place_[request] == none) enter(request);
    return items_[place_[request]];
  }
  void leave(std::uint32_t request) {
    if (place_[request] == none) return;
    free_.push_back(place_[request]);
    place_[request] = none;
  }

 private:
  void enter(std::uint32_t request) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(items_.size()));
      items_.emplace_back();
    }
    place_[request] = free_.back();
    free_.pop_back();
    items_[place_[request]] = {};
  }

  static constexpr std::uint32_t none = 0xffffffffu;
  std::vector<std::uint32_t> place_;   // in items_, by request
  std::deque<RequestUnderway> items_;  // which stay where they are
  std::vector<std::uint32_t> free_;
};

}  // namespace headgate::loadtest
