// The books of a whole gateway, looked at after every event of its simulation and at its end.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace headgate::loadtest {

struct Played {
  std::string wrong;                            // the first thing that was; empty: nothing
  std::map<std::string, std::uint64_t> ends;    // "refused queue_full": how many requests
  std::map<std::string, std::uint64_t> orders;  // "start retry", "answer queue_full": how many
};

// Plays the world of that seed; every tenth twice, which must be the same even if its Dispatcher is
// made anew from its image in the midst of it.
Played play_world(std::uint64_t seed);

}  // namespace headgate::loadtest
