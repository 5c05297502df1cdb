// What is kept of each request (about 100 bytes), and the limits it is judged by. Times count from the start of the
// run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "loadtest/answer.hpp"
#include "loadtest/slo.hpp"
#include "policies/base/time.hpp"

namespace headgate::loadtest {

// Texts that repeat (backends, reasons) as small numbers; 0 is "". At most 4,096: later ones read "(other)".
class Names {
 public:
  Names() { number(""); }
  std::uint16_t number(const std::string& name);
  const std::string& operator[](std::uint16_t number) const { return names_[number]; }

 private:
  std::unordered_map<std::string, std::uint16_t> numbers_;
  std::vector<std::string> names_;
};

struct Record {
  Nanos intended{}, sent{}, ended{};  // sent: when the generator began; later than intended by its own lag
  std::optional<Nanos> first;         // content of a stream
  Nanos last{}, gap_max{};
  Nanos queued{};  // at the gateway, of the last send; a simulation's
  std::uint32_t content_events = 0, reported_input = 0, reported_output = 0;
  std::uint32_t attempts = 0;
  std::uint32_t sends = 1;                            // by the caller, its own retries included
  std::uint32_t resent_after_ms = 0;                  // its last one, after `intended`
  std::uint16_t status = 0, backend = 0, reason = 0;  // the last two by Names
  bool stream = true;
  std::uint8_t traffic_class = 0;
  Outcome outcome = Outcome::pending;

  std::optional<Nanos> ttft() const { return first ? std::optional{*first - intended} : std::nullopt; }
  std::optional<Nanos> tpot() const {  // mean gap; needs two content events
    if (!first || content_events < 2) return std::nullopt;
    return (last - *first) / (content_events - 1);
  }
  Nanos e2e() const { return ended - intended; }
};

// Completed correctly and within every limit: what goodput counts.
bool is_good(const Record& record, const Slo& slo);
// The same with its TTFT counted from the caller's last send, which forgives the refusals before it.
bool is_good_since_last_send(const Record& record, const Slo& slo);

}  // namespace headgate::loadtest
