// How fast a mock replica is, as data. The model is a step machine with continuous batching and chunked prefill: one
// step serves every running request, each with its next token or with a part of its prompt, and takes
//   step_fixed + step_per_running * requests in it + step_per_context_token * tokens resident for those that decode
//   + prefill_per_token * prompt tokens in it.
// The prompt tokens of a step and its decoding requests share batched_tokens_max. (Yu et al., "Orca", OSDI 2022;
// Agrawal et al., "Sarathi-Serve", OSDI 2024.)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "policies/base/time.hpp"

namespace headgate::engine {

struct Profile {
  std::string name;
  bool paced = true;    // false: a server answers at once and never asks the engine
  Nanos overhead{0};    // from a request's arrival until it may enter a step
  Nanos step_fixed{0};  // > 0 if paced
  Nanos step_per_running{0};
  Nanos step_per_context_token{0};
  Nanos prefill_per_token{0};
  std::uint32_t slots = 1;      // requests running at once, >= 1
  std::uint32_t queue_max = 0;  // requests waiting to run; one more is turned away
  std::uint32_t batched_tokens_max = 8192;
  std::uint32_t block_tokens = 16;
  std::uint32_t blocks = 1u << 20;  // of KV memory
};

// The same server in a world where everything takes 1/speed of its time; speed > 0.
Profile at_speed(Profile profile, double speed);

std::span<const Profile> profiles();
const Profile* find_profile(std::string_view name);  // nullptr: no such profile

}  // namespace headgate::engine
