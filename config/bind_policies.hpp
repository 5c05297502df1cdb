// Names, docs and ranges for the options that live in policies/plan.hpp, which knows nothing of files.
#pragma once

#include <cstdint>
#include <utility>

#include "config/field.hpp"
#include "config/options.hpp"

namespace headgate::config {

using namespace std::chrono_literals;

template <>
struct EnumNames<policies::Balance> {
  static constexpr std::array<std::pair<policies::Balance, const char*>, 4> all{
      {{policies::Balance::round_robin, "round_robin"},
       {policies::Balance::weighted, "weighted"},
       {policies::Balance::least_in_flight, "least_in_flight"},
       {policies::Balance::p2c, "p2c"}}};
};

template <>
struct EnumNames<policies::LimitMode> {
  static constexpr std::array<std::pair<policies::LimitMode, const char*>, 2> all{
      {{policies::LimitMode::fixed, "static"}, {policies::LimitMode::adaptive, "adaptive"}}};
};

template <>
struct EnumNames<policies::PoolOrder> {
  static constexpr std::array<std::pair<policies::PoolOrder, const char*>, 4> all{
      {{policies::PoolOrder::priority, "priority"},
       {policies::PoolOrder::cheapest_within_budget, "cheapest_within_budget"},
       {policies::PoolOrder::fastest, "fastest"},
       {policies::PoolOrder::weighted, "weighted"}}};
};

template <>
struct EnumNames<policies::QueueOrder> {
  static constexpr std::array<std::pair<policies::QueueOrder, const char*>, 3> all{
      {{policies::QueueOrder::deadline, "deadline"},
       {policies::QueueOrder::fifo, "fifo"},
       {policies::QueueOrder::adaptive_lifo, "adaptive_lifo"}}};
};

template <>
struct EnumNames<policies::Class> {
  static constexpr std::array<std::pair<policies::Class, const char*>, 4> all{
      {{policies::Class::interactive, policies::class_names[0].data()},
       {policies::Class::standard, policies::class_names[1].data()},
       {policies::Class::batch, policies::class_names[2].data()},
       {policies::Class::sheddable, policies::class_names[3].data()}}};
};

template <>
struct EnumNames<policies::LastCooling> {
  static constexpr std::array<std::pair<policies::LastCooling, const char*>, 2> all{
      {{policies::LastCooling::refuse, "refuse"}, {policies::LastCooling::attempt, "try"}}};
};

template <>
struct Describe<policies::LimitOptions> {
  static constexpr auto fields() {
    using L = policies::LimitOptions;
    return std::tuple{
        field("mode", &L::mode, "static: slots. adaptive: found by itl; for slots nobody knows, or loads that change."),
        field("itl", &L::itl, "adaptive: mean gap between tokens that an answer may have; 1 in 50 may miss it.",
              Range<Nanos>{1ms, 1min}),
        absent_means("4000 with adaptive, else no limit",
                     field("prefill_tokens_max", &L::prefill_tokens_max,
                           "No new request while prompts of so many tokens are without a first token: "
                           "steadier streams.",
                           Range<std::uint32_t>{1, 100'000'000})),
    };
  }
};

template <>
struct Describe<policies::QueueOptions> {
  static constexpr auto fields() {
    using Q = policies::QueueOptions;
    return std::tuple{
        field("requests_max", &Q::requests_max, "Requests that may wait; one more is refused with queue_full.",
              Range<std::uint32_t>{0, 1'000'000}),
        field("bytes_max", &Q::bytes_max, "Sum of the bodies of waiting requests.", Range<Bytes>{{0}, {1ull << 40}}),
        field("wait_max", &Q::wait_max, "Longest wait for a free slot.", Range<Nanos>{0s, 1h}),
        field("order", &Q::order,
              "Of one tenant's requests. adaptive_lifo: by deadline, but the newest first while the queue is late."),
    };
  }
};

template <>
struct Describe<policies::HealthOptions> {
  static constexpr auto fields() {
    using H = policies::HealthOptions;
    constexpr Range<Nanos> wait{1ms, 24h};
    return std::tuple{
        field("consecutive_failures", &H::consecutive_failures, "Hard failures in a row that eject a backend.",
              Range<std::uint32_t>{1, 1000}),
        field("success_ratio_min", &H::success_ratio_min,
              "Less of the last 20 verdicts, with 5 failures, ejects; lower it for backends that fail often. 0: off.",
              Range<double>{0, 1}),
        field("eject", &H::eject, "First ejection; each further one is twice as long.", wait),
        field("eject_max", &H::eject_max, "Longest ejection; shorten it to be back sooner: each end costs one request, served elsewhere.", wait),
        field(
            "slow_start", &H::slow_start,
            "After a return its limit grows by a tenth each tenth of this; longer for caches that warm slowly. 0: off.",
            Range<Nanos>{0s, 1h}),
        field("demote_slow", &H::demote_slow,
              "One whose tokens come 2.5 times slower than its pool's would gets a request each 5 s; false: mixed "
              "hardware."),
        field("cooldown_first", &H::cooldown_first,
              "Pause after a 429, 503 or 529 that advises none; doubles each time.", wait),
        field("cooldown_unadvised_max", &H::cooldown_unadvised_max, "Longest such pause.", wait),
        field("cooldown_max", &H::cooldown_max, "Longest Retry-After of a backend that is followed.", wait),
        field("cooldown_last_backend", &H::cooldown_last_backend,
              "When every backend left is cooling: refuse the request, or try one all the same."),
    };
  }
};

template <>
struct Describe<policies::RetryOptions> {
  static constexpr auto fields() {
    using R = policies::RetryOptions;
    return std::tuple{
        field("attempts_max", &R::attempts_max, "Attempts per request, the first one included.",
              Range<std::uint32_t>{1, 16}),
        field("after_delivery", &R::after_delivery, "Retry also what a backend may have received in full."),
        field("budget_per_success", &R::budget_per_success, "Retries earned by each success.", Range<double>{0, 10}),
        field("budget_initial", &R::budget_initial, "Retries there are at the start.", Range<double>{0, 1e6}),
        field("budget_max", &R::budget_max, "Retries that may be saved up.", Range<double>{0, 1e6}),
        field("backoff", &R::backoff, "Before the same backend is tried again; doubles each time, drawn from 0 up.",
              Range<Nanos>{0s, 1min}),
        field("backoff_max", &R::backoff_max, "Longest such pause.", Range<Nanos>{0s, 10min}),
    };
  }
};

template <>
struct Describe<policies::BudgetOptions> {
  static constexpr auto fields() {
    using B = policies::BudgetOptions;
    return std::tuple{
        absent_means("none", field("ttft", &B::ttft,
                                   "To the first content. Pools predicted to miss it are passed over; if all, refused.",
                                   Range<Nanos>{1ms, 1h})),
        absent_means("none", field("itl", &B::itl, "Mean gap between tokens. Pools that are slower come last.",
                                   Range<Nanos>{1ms, 1min})),
        absent_means("none", field("total", &B::total, "To the end of the answer; what waits longer is refused.",
                                   Range<Nanos>{1ms, 168h})),
        absent_means("none",
                     field("max_cost_usd", &B::max_cost_usd,
                           "What it may cost; dearer pools are left out, and if all are it is refused with 402.",
                           Range<double>{0, 1e6})),
        absent_means("none",
                     field("min_quality", &B::min_quality, "Pools of less quality are left out.", Range<double>{0, 1})),
    };
  }
};

template <>
struct Describe<policies::TenantLimits> {
  static constexpr auto fields() {
    using L = policies::TenantLimits;
    constexpr Range<std::uint64_t> number{1, 1'000'000'000'000};
    return std::tuple{
        absent_means("none", field("requests_per_minute", &L::requests_per_minute,
                                   "Requests; so many may come at once. More are refused with 429.", number)),
        absent_means(
            "none", field("tokens_per_minute", &L::tokens_per_minute,
                          "Prompt and answer tokens, estimated when a request comes, corrected when it ends.", number)),
        absent_means("none", field("concurrency", &L::concurrency, "Requests that wait or run at once.",
                                   Range<std::uint32_t>{1, 1'000'000})),
    };
  }
};

template <>
struct Describe<policies::TimeoutOptions> {
  static constexpr auto fields() {
    using T = policies::TimeoutOptions;
    constexpr Range<Nanos> wait{1ms, 24h};
    return std::tuple{
        field("connect", &T::connect, "Until a connection to the backend stands.", Range<Nanos>{1ms, 5min}),
        field("first_byte", &T::first_byte, "From the request sent to the first byte of the answer.", wait),
        field("first_token", &T::first_token, "From the request sent to the first content of a stream.", wait),
        field("idle", &T::idle, "Longest silence inside an answer.", wait),
        field("total_unary", &T::total_unary, "Whole answer that is not streamed.", wait),
        field("total_stream", &T::total_stream, "Whole stream.", Range<Nanos>{1ms, 168h}),
    };
  }
};

}  // namespace headgate::config
