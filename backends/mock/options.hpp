// What `headgate mock` is told. Replicas listen on successive ports, each with an engine and faults of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace headgate::mock {

struct MockOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 9001;       // of the first replica; 0: each takes a free one
  std::uint16_t control_port = 0;  // POST and GET /control also here, successive too; 0: on the data port only
  std::uint16_t replicas = 1;      // 1..256
  std::vector<std::string> profiles = {"demo"};  // names or files (profile_file.hpp), of the replicas in turn
  std::optional<std::uint32_t> slots;            // instead of the profile's, 1..65536
  double time_scale = 1;                         // 10: ten times as fast as the profile says; 0.001..1000
  std::string faults;                            // what happens when: a file (fault_plan.hpp); empty: nothing by itself
  std::uint64_t seed = 1;                        // of the draws for faults; texts do not depend on it
  std::vector<std::string> models;               // names it answers to; empty: any, listed as "mock"
  std::uint32_t connections_max = 10000;         // per replica; one more is closed unanswered
};

}  // namespace headgate::mock
