// Plays a plan: sends each request at its intended time, runs the timeline, draws the live view, and keeps a Record per
// request. One thread, one io_context.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/io/io.hpp"
#include "loadtest/live.hpp"
#include "loadtest/prompt.hpp"
#include "loadtest/record.hpp"
#include "loadtest/tally.hpp"
#include "loadtest/timeline.hpp"
#include "loadtest/trace.hpp"

namespace headgate::loadtest {

struct RunSettings {
  backends::asio::ip::tcp::endpoint target;
  Asking asking;
  std::vector<TrafficClass> classes;  // of the plan
  Nanos timeout = std::chrono::seconds(120);
  std::uint32_t connections_max = 10000;
  bool check_tokens = true;
  Show show = Show::nothing;
  bool colour = false;
  std::string title;
  std::string admin_authority;  // empty: no admin listener
  backends::asio::ip::tcp::endpoint admin;
};

// How a model server was used; only a simulation knows.
struct ServerUse {
  std::string name;
  double busy = 0;      // share of the run in which it computed
  double batch = 0;     // mean requests in a step
  double kv_held = 0;   // mean share of its KV memory held by requests
  double cost_usd = 0;  // at the price of its pool, the first one's if several share it
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0, preemptions = 0;  // cached: of the prompts'
};

struct RunResult {
  std::vector<Record> records;  // by request number
  Names names;
  Tally tally{{TrafficClass{}}};
  std::vector<TimelineEvent> events;
  std::vector<Happened> happened;  // of events, same order
  Nanos duration{};                // from the first intended send to the last end
  std::uint64_t connected = 0;     // connections made; 0: nothing could be sent
  bool interrupted = false;        // SIGINT or SIGTERM
  bool simulated = false;          // in virtual time: no generator that could be late, no commands, no connections
  std::vector<ServerUse> servers;
  std::vector<std::string> faults;  // as written; of a simulation
};

RunResult run_plan(const RunSettings& settings, const std::vector<Planned>& plan, std::vector<TimelineEvent> events);

}  // namespace headgate::loadtest
