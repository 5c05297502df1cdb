#include "config/units.hpp"

#include <gtest/gtest.h>

#include <string>

namespace headgate::config {
namespace {

using namespace std::chrono_literals;

TEST(Duration, ReadsANumberWithItsUnit) {
  struct Row {
    const char* text;
    Nanos value;
  };
  const Row rows[] = {{"800ms", 800ms}, {"2s", 2s},   {"5m", 5min},          {"1h", 1h},          {"100us", 100us},
                      {"7ns", 7ns},     {"0s", 0s},   {"0ms", 0ms},          {"1.5s", 1500ms},    {"0.25ms", 250us},
                      {"1.000s", 1s},   {"0.1m", 6s}, {"0.000000001s", 1ns}, {"100000h", 100000h}};
  for (const Row& row : rows) {
    const auto parsed = parse_duration(row.text);
    ASSERT_TRUE(parsed) << row.text << ": " << parsed.problem;
    EXPECT_EQ(*parsed, row.value) << row.text;
  }
}

TEST(Duration, SaysWhatWouldBeRight) {
  struct Row {
    const char *text, *problem;
  };
  const std::string units = "ns, us, ms, s, m, h";
  const Row rows[] = {{"", "must begin with a number"},
                      {"s", "must begin with a number"},
                      {"-5s", "must begin with a number"},
                      {".5s", "must begin with a number"},
                      {"5", "must end in a unit out of"},
                      {"5.s", "needs a digit after the point"},
                      {"5 s", "did you mean \"5s\"?"},
                      {"5sec", "did you mean \"5s\"?"},
                      {"5S", "did you mean \"5s\"?"},
                      {"3 minutes", "did you mean \"3m\"?"},
                      {"3hr", "did you mean \"3h\"?"},
                      {"10MS", "did you mean \"10ms\"?"},
                      {"10msec", "did you mean \"10ms\"?"},
                      {"10µs", "did you mean \"10us\"?"},
                      {"5d", "must be a number followed by a unit out of ns, us, ms, s, m, h"},
                      {"1m30s", "must be a number followed by a unit out of"},
                      {"1.5ns", "must come to a whole number of ns"},
                      {"0.0000000001s", "must come to a whole number of ns"},
                      {"1.0000000000000000000s", "has too many digits after the point"},
                      {"99999999999999999999s", "is too large"},
                      {"9999999999999999h", "is too large"},
                      {"9223372036854775807.9us", "is too large"}};
  for (const Row& row : rows) {
    const auto parsed = parse_duration(row.text);
    EXPECT_FALSE(parsed) << row.text;
    EXPECT_NE(parsed.problem.find(row.problem), std::string::npos) << row.text << ": " << parsed.problem;
  }
}

TEST(Duration, PrintsInTheLargestUnitThatDividesIt) {
  struct Row {
    Nanos value;
    const char* text;
  };
  const Row rows[] = {{0s, "0s"},     {1ns, "1ns"},   {1500us, "1500us"}, {75ms, "75ms"}, {1s, "1s"},
                      {75s, "75s"},   {60s, "1m"},    {90s, "90s"},       {300s, "5m"},   {3600s, "1h"},
                      {5400s, "90m"}, {168h, "168h"}, {-5s, "-5s"}};
  for (const Row& row : rows) EXPECT_EQ(format_duration(row.value), row.text);
}

TEST(Size, ReadsANumberWithItsUnit) {
  struct Row {
    const char* text;
    std::uint64_t count;
  };
  const Row rows[] = {{"512B", 512},          {"64KiB", 64 << 10}, {"32MiB", 32 << 20}, {"1GiB", 1 << 30},
                      {"2TiB", 2ull << 40},   {"64KB", 64'000},    {"3MB", 3'000'000},  {"4GB", 4'000'000'000},
                      {"1TB", 1000000000000}, {"1.5KiB", 1536},    {"0B", 0},           {"0.5MB", 500'000}};
  for (const Row& row : rows) {
    const auto parsed = parse_size(row.text);
    ASSERT_TRUE(parsed) << row.text << ": " << parsed.problem;
    EXPECT_EQ(parsed->count, row.count) << row.text;
  }
}

TEST(Size, SaysWhatWouldBeRight) {
  struct Row {
    const char *text, *problem;
  };
  const Row rows[] = {{"32", "must end in a unit out of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB"},
                      {"32mib", "did you mean \"32MiB\"?"},
                      {"32 M", "did you mean \"32MiB\"?"},
                      {"32k", "did you mean \"32KiB\"?"},
                      {"10 bytes", "did you mean \"10B\"?"},
                      {"1.5B", "must come to a whole number of B"},
                      {"KiB", "must begin with a number"},
                      {"99999999TiB", "is too large"}};
  for (const Row& row : rows) {
    const auto parsed = parse_size(row.text);
    EXPECT_FALSE(parsed) << row.text;
    EXPECT_NE(parsed.problem.find(row.problem), std::string::npos) << row.text << ": " << parsed.problem;
  }
}

TEST(Size, PrintsInTheLargestUnitThatDividesIt) {
  struct Row {
    std::uint64_t count;
    const char* text;
  };
  const Row rows[] = {{0, "0B"},     {511, "511B"},      {512, "512B"},   {1024, "1KiB"},      {32 << 20, "32MiB"},
                      {1000, "1KB"}, {3'000'000, "3MB"}, {1536, "1536B"}, {1ull << 40, "1TiB"}};
  for (const Row& row : rows) EXPECT_EQ(format_size(Bytes{row.count}), row.text);
}

TEST(Units, WhatIsPrintedReadsBackAsTheSame) {
  std::uint64_t value = 1;
  for (int i = 0; i < 2000; ++i) {
    value = value * 6364136223846793005ull + 1442695040888963407ull;
    const std::uint64_t count = value >> (1 + i % 63);
    EXPECT_EQ(parse_size(format_size(Bytes{count})).value, Bytes{count});
    const Nanos duration{static_cast<std::int64_t>(count)};
    EXPECT_EQ(parse_duration(format_duration(duration)).value, duration);
  }
}

}  // namespace
}  // namespace headgate::config
