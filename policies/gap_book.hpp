// Collects what a host reports to Dispatcher::progress(). Adding is constant time; memory is one entry an endpoint.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "policies/calls.hpp"

namespace headgate::policies {

class GapBook {
 public:
  void add(std::uint32_t endpoint, std::uint32_t gaps, Nanos sum) {
    if (endpoint >= places_.size()) places_.resize(endpoint + 1, none);
    std::uint32_t& place = places_[endpoint];
    if (place == none) {
      place = static_cast<std::uint32_t>(list_.size());
      list_.push_back({.endpoint = EndpointId{endpoint}});
    }
    list_[place].gaps += gaps;
    list_[place].gap_sum += sum;
  }
  bool empty() const { return list_.empty(); }
  // In the order in which endpoints were first heard of; the book is empty then.
  std::vector<Progress> take() {
    for (const Progress& of : list_) places_[index(of.endpoint)] = none;
    return std::exchange(list_, {});
  }

 private:
  static constexpr std::uint32_t none = ~0u;
  std::vector<std::uint32_t> places_;  // by endpoint: where in the list
  std::vector<Progress> list_;
};

}  // namespace headgate::policies
