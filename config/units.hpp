// Durations and sizes as text with a unit, both ways. A duration is a number and one of ns, us, ms, s, m, h ("800ms",
// "1.5s"); a size a number and one of B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024). A fraction is
// taken when it comes to a whole number of nanoseconds or bytes. Zero needs its unit too: "0s".
#pragma once

#include <string>
#include <string_view>

#include "config/options.hpp"
#include "config/parsed.hpp"

namespace headgate::config {

inline constexpr std::string_view duration_units = "ns, us, ms, s, m, h";
inline constexpr std::string_view size_units = "B, KB, MB, GB, TB, KiB, MiB, GiB, TiB";

Parsed<Nanos> parse_duration(std::string_view text);
Parsed<Bytes> parse_size(std::string_view text);

// In the largest unit that divides it: 90s is "90s", 3600s is "1h", 32 << 20 is "32MiB".
std::string format_duration(Nanos duration);
std::string format_size(Bytes size);

}  // namespace headgate::config
