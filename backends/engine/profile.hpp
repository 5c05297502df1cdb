// How fast a mock replica is, as data. A step (one token for every decoding request) takes
//   step_fixed + step_per_running * decoding requests,
// and prompts are prefilled one after another, beside the steps, at prefill_rate tokens per second. Chunked prefill, KV
// memory and the cost of resident context come with the deep engine; they will be further fields here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "policies/base/time.hpp"

namespace headgate::engine {

struct Profile {
  std::string_view name;
  bool paced = true;               // false: a server answers at once and never asks the engine
  std::uint32_t prefill_rate = 0;  // tokens per second; 0: takes no time
  Nanos step_fixed{0};
  Nanos step_per_running{0};
  std::uint32_t slots = 1;      // requests prefilling or decoding at once, >= 1
  std::uint32_t queue_max = 0;  // requests waiting for a slot; one more is turned away
};

std::span<const Profile> profiles();
const Profile* find_profile(std::string_view name);  // nullptr: no such profile

// Time to prefill a prompt, and to make one step.
Nanos prefill_time(const Profile& profile, std::uint32_t prompt_tokens);
Nanos step_time(const Profile& profile, std::uint32_t decoding);

}  // namespace headgate::engine
