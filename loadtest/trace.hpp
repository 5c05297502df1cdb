// Request traces: what arrives when, and how long prompt and answer are. Two forms are read:
//   Azure CSV   header TIMESTAMP,ContextTokens,GeneratedTokens; lines end in LF or CR LF, the last one in either or
//               neither; stamps "2023-11-16 18:15:46.6805900" with 0 to 9 digits of fraction
//   JSON lines  {"at_ms":12.5,"input":100,"output":20}, one per line
// Lines may be out of order; they are sorted. Token counts are 1 .. 1,000,000; at most 10,000,000 lines.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "policies/base/time.hpp"

namespace headgate::loadtest {

struct Planned {
  Nanos at{};  // since the first arrival
  std::uint32_t input = 0, output = 0;
  bool stream = true;
};

inline constexpr std::uint32_t trace_tokens_max = 1'000'000;
inline constexpr std::size_t trace_lines_max = 10'000'000;

struct TraceResult {
  std::vector<Planned> requests;
  std::string problem;  // empty, or "FILE:line: what is wrong"
};

// Reads at most `limit` requests (0: all). `name` is what a problem calls the file.
TraceResult read_trace(std::istream& in, const std::string& name, std::uint64_t limit);
TraceResult read_trace_file(const std::string& path, std::uint64_t limit);

// The same form as the Azure file: CR LF, seven digits, the last line without its end. Stamps count from 2026-01-01.
void write_azure_csv(std::ostream& out, const std::vector<Planned>& requests);

}  // namespace headgate::loadtest
