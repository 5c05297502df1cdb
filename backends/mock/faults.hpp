// What a replica is told to do wrong, and to which requests. Set and cleared through /control (control.hpp) or by a
// plan (fault_plan.hpp), at most one fault a request: the first in order of setting whose count and share allow it.
//
//   refuse         the listening socket is closed until cleared; open connections go on
//   hang           reads the request and never answers
//   slow_head      begins `delay_ms` late
//   status         answers `status`, with Retry-After and a body if given
//   in_band_error  200, then one comment and one error event; unary: 200 with an error object
//   reset          RST after `after_tokens` content events; unary: half way in the body
//   no_done        ends in good order after `after_tokens`, without finish and [DONE]; unary: FIN half way in the body
//   stall          says nothing more after `after_tokens`; unary: half way in the body. Its slot is free when the
//                  work would have ended
//   drip           from `after_tokens` on (unary: from the first byte) `bytes` at a time, every `delay_ms`
//   malformed      after `after_tokens` one event that is no JSON, then on as ever; unary: a whole body, cut JSON
//   frozen_metrics /metrics keeps saying what it said when this was set
// An answer shorter than `after_tokens` is whole.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::mock {

enum class FaultKind : std::uint8_t {
  refuse,
  hang,
  slow_head,
  status,
  in_band_error,
  reset,
  no_done,
  stall,
  drip,
  malformed,
  frozen_metrics
};
// By FaultKind.
inline constexpr std::array<std::string_view, 11> fault_names{"refuse",        "hang",      "slow_head",     "status",
                                                              "in_band_error", "reset",     "no_done",       "stall",
                                                              "drip",          "malformed", "frozen_metrics"};
constexpr std::string_view name_of(FaultKind kind) { return fault_names[static_cast<std::size_t>(kind)]; }

struct Fault {
  FaultKind kind = FaultKind::hang;
  std::uint32_t after_tokens = 0;            // reset, no_done, stall, drip, malformed
  std::uint32_t delay_ms = 0;                // slow_head, drip
  std::uint32_t bytes = 1;                   // drip
  std::uint16_t status = 0;                  // status: 400..599
  std::optional<std::uint32_t> retry_after;  // status, seconds
  std::string body, content_type;            // status; empty: an error in the usual shape
  std::string type = "server_error";         // in_band_error: of the error, also its code
  bool health = false;                       // hang, slow_head, status: GET /health too
  std::optional<std::uint32_t> count;        // requests left to hit; none: no limit
  std::optional<double> share;               // of the requests that come, 0..1
};

class FaultSet {
 public:
  explicit FaultSet(std::uint64_t seed) : seed_(seed) {}

  void set(Fault fault);  // replaces one of the same kind, so there are never more than kinds
  void clear() { faults_.clear(); }
  void clear(FaultKind kind);
  bool has(FaultKind kind) const;
  const std::vector<Fault>& faults() const { return faults_; }

  // The fault of the request with this serial number, if any; uses up its count.
  std::optional<Fault> pick(std::uint64_t request, bool health_check);

 private:
  std::uint64_t seed_;
  std::vector<Fault> faults_;
};

}  // namespace headgate::mock
