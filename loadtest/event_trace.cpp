#include "loadtest/event_trace.hpp"

#include <algorithm>
#include <unordered_map>

#include "config/event_codec.hpp"
#include "policies/base/tokens.hpp"

namespace headgate::loadtest {
namespace {

using config::EventReader;

std::uint32_t bounded(std::uint32_t tokens) { return std::clamp(tokens, 1u, trace_tokens_max); }

class Arrivals {
 public:
  Arrivals(TraceResult& out, std::uint64_t limit) : out_(out), limit_(limit == 0 ? trace_lines_max : limit) {}

  void operator()(const config::Arrived& event) {
    // A slot that is taken again has a new serial: ids do not come twice.
    if (add(event.arrival, event.arrival.prompt_tokens)) places_[event.id] = out_.requests.size() - 1;
  }
  void operator()(const config::TurnedAway& event) {
    policies::Arrival arrival = event.arrival;
    arrival.stream = true;  // it was not read so far
    if (event.answer) add(arrival, estimate_tokens(arrival.body_bytes));
  }
  void operator()(const config::Ended& event) {
    const auto place = places_.find(event.attempt.request);
    // One that was cut off says nothing of the length it would have had.
    if (place == places_.end() || event.outcome.output_tokens == 0 || event.outcome.end != policies::End::ok) return;
    Planned& planned = out_.requests[place->second];
    planned.output = bounded(event.outcome.output_tokens);
    if (event.outcome.input_tokens > 0) planned.input = bounded(event.outcome.input_tokens);
  }
  template <class Other>
  void operator()(const Other&) {}

  void fill_unknown() {
    std::uint64_t known = 0, sum = 0;
    for (const Planned& planned : out_.requests) {
      known += planned.output > 0 ? 1 : 0;
      sum += planned.output;
    }
    const auto mean = static_cast<std::uint32_t>(known == 0 ? 1 : sum / known);
    for (Planned& planned : out_.requests) {
      if (planned.output == 0) planned.output = bounded(mean);
    }
  }

 private:
  bool add(const policies::Arrival& arrival, std::uint32_t input) {
    if (out_.requests.size() == limit_ || !out_.problem.empty()) return false;
    if (arrival.received == never) {
      out_.problem = "a request that came at no time";
      return false;
    }
    out_.requests.push_back(
        {.at = arrival.received.time_since_epoch(), .input = bounded(input), .output = 0, .stream = arrival.stream});
    return true;
  }

  TraceResult& out_;
  const std::uint64_t limit_;
  std::unordered_map<policies::RequestId, std::size_t> places_;
};

}  // namespace

bool is_event_log(std::string_view begin) { return begin.starts_with(config::event_log_begin); }

TraceResult read_event_trace(std::string_view log, const std::string& name, std::uint64_t limit) {
  TraceResult result;
  const config::EventLogHead head = config::read_event_log_head(log);
  if (!head.problem.empty()) return {.problem = name + ":1: " + head.problem};
  EventReader reader(head.records);
  Arrivals arrivals(result, limit);
  config::Event event;
  EventReader::Read read{};
  while ((read = reader.next(event)) == EventReader::Read::event) std::visit(arrivals, event);
  if (read == EventReader::Read::wrong) {
    const std::size_t at = log.size() - head.records.size() + reader.offset();
    return {.problem = name + ": byte " + std::to_string(at) + ": a record that means nothing"};
  }
  if (!result.problem.empty()) return {.problem = name + ": " + result.problem};
  if (result.requests.empty()) return {.problem = name + ": no requests"};
  result.says_which_stream = true;
  arrivals.fill_unknown();
  std::ranges::stable_sort(result.requests, {}, &Planned::at);
  const Nanos begin = result.requests.front().at;
  for (Planned& planned : result.requests) planned.at -= begin;
  return result;
}

}  // namespace headgate::loadtest
