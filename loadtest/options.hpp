// Everything a load run can be told; each field is one flag of `headgate load` (its name with dashes), each
// initialiser its default. Texts with a grammar are checked by load(), which reports a bad one and returns 2.
// Durations are texts with a unit: "250us", "800ms", "45s", "2m".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headgate::loadtest {

struct LoadOptions {
  // What is asked, and of whom.
  std::string target = "http://127.0.0.1:8080";  // http://HOST:PORT, no path; HOST is an address or a name
  std::string path = "chat";                     // chat: /v1/chat/completions; completions: /v1/completions
  std::string model = "chat";
  std::string api_key;        // sent as Authorization: Bearer; empty: no key
  double stream_share = 1.0;  // 0..1 of the requests are streams, the rest unary (--unary sets 0)
  bool check_tokens = true;   // one word = one token, as in the mock: counts must match what was asked for

  // When: exactly one of workload, trace and rate.
  std::string workload;              // a file of classes, each with a rate, lengths and limits: workload.hpp
  std::string trace;                 // Azure CSV, Mooncake or own JSON lines: trace.hpp
  double rate = 0;                   // requests per second, open loop
  std::string arrivals = "poisson";  // with rate: poisson, gamma, or azure-conv (gamma, as bursty as the fitted trace)
  double cv = 1;                     // of the gaps of gamma arrivals
  std::string duration;              // with rate: arrivals for this long; with trace: ignore later ones
  std::uint64_t limit = 0;           // at most this many requests; 0: no limit
  double speed = 1.0;                // time of a trace or of the draws is divided by this
  std::uint64_t seed = 1;            // same seed, same arrivals, lengths, prompts

  // How long, with rate: words = tokens.
  std::string lengths = "fixed";  // fixed, or azure-conv (both lengths drawn as in the fitted trace)
  std::uint32_t prompt_tokens = 100;
  std::uint32_t output_tokens = 50;

  // Limits of the client.
  std::uint32_t connections_max = 10000;  // requests over it wait here; the wait counts as latency and as lag
  std::string timeout = "120s";           // of one request, from its intended send time

  // What is shown and judged.
  std::string slo = "ttft=1s,tpot=50ms";  // any of ttft, tpot (mean), gap (largest), e2e; unary answers: e2e only
  std::string json;      // summary as JSON: a file, or "-" for standard output (then the table is not printed)
  std::string records;   // one JSON line per request: a file
  std::string timeline;  // the run second by second, as CSV: a file
  std::string attempts;  // simulated: one CSV line per attempt, when and where: a file
  bool live = false;     // one-screen summary while it runs; plain lines every 5 s when not a terminal
  std::string admin;     // http://HOST:PORT of the gateway's admin listener, for the live screen; empty: none
  std::string title;     // headline of the live screen

  // A timeline of things that happen meanwhile: "at=WHEN;label=TEXT[;kill=POOL/BACKEND[;streams=N]];run=COMMAND".
  // WHEN is a share of the arrivals' span ("1/3", "0.5") or a duration; COMMAND, the rest of the text, goes to
  // /bin/sh -c. kill says which backend the command kills: the report then compares the streams cut with those that
  // backend was sending. streams=N: wait until at least N streams have content from it and are not finished.
  std::vector<std::string> events;
  std::vector<std::string> expect;  // conditions on the JSON summary, "cut>=5", "ttft_ms.p99<800"; one false: exit 1
  bool verdict = false;             // end with a plain PASS or FAIL: nothing failed before its first token, no wrong
                                    // count, only the killed backend's streams were cut, each by one error event

  std::string write_trace;  // write the planned arrivals as Azure CSV to this file and send nothing
};

}  // namespace headgate::loadtest
