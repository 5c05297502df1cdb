// Request traces: what arrives when, and how long prompt and answer are. Four forms are read:
//   Azure CSV   header TIMESTAMP,ContextTokens,GeneratedTokens; lines end in LF or CR LF, the last one in either or
//               neither; stamps "2023-11-16 18:15:46.6805900" with 0 to 9 digits of fraction
//   JSON lines  {"at_ms":12.5,"input":100,"output":20}, one per line
//   Mooncake    {"timestamp":0,"input_length":700,"output_length":20,"hash_ids":[0,1]}: ms; an id for each 512 tokens
//   of
//               the prompt, which stands for all the text up to there (Qin et al., FAST 2025)
//   event log   of headgate serve --event-log: event_trace.hpp
// Lines may be out of order; they are sorted. Token counts are 1 .. 1,000,000; at most 10,000,000 lines.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "policies/base/time.hpp"

namespace headgate::loadtest {

struct Planned {
  Nanos at{};  // since the first arrival
  std::uint32_t input = 0, output = 0;
  bool stream = true;
  std::uint8_t traffic_class = 0;           // of the plan's
  std::span<const std::uint32_t> prefix{};  // hash ids; whoever holds the trace holds them. Empty: shares nothing
};

inline constexpr std::uint32_t prefix_block_tokens = 512;  // of a hash id

inline constexpr std::uint32_t trace_tokens_max = 1'000'000;
inline constexpr std::size_t trace_lines_max = 10'000'000;

struct TraceResult {
  std::vector<Planned> requests{};
  std::shared_ptr<const std::vector<std::uint32_t>> prefixes{};  // that the requests point into; null: there are none
  bool says_which_stream = false;                                // else all do
  std::string problem{};                                         // empty, or "FILE:line: what is wrong"
};

// Reads at most `limit` requests (0: all). `name` is what a problem calls the file.
TraceResult read_trace(std::istream& in, const std::string& name, std::uint64_t limit);
TraceResult read_trace_file(const std::string& path, std::uint64_t limit);

// The same form as the Azure file: CR LF, seven digits, the last line without its end. Stamps count from 2026-01-01.
void write_azure_csv(std::ostream& out, const std::vector<Planned>& requests);

}  // namespace headgate::loadtest
