// The event log: what the Dispatcher of a process was called with and what it ordered, in the order of its lock. The
// same calls made on a Dispatcher of the same build bring the same orders: `headgate simulate --replay`.
//
//   line 1   {"headgate_event_log":1,"build":"0.1.0","config":{...}}   secrets of the configuration as ***
//   then     records: a byte, the place of its struct in Event; then the struct's fields as visit() names them.
//            Numbers are little-endian, enums and bools a byte or as wide as they are, durations and times nanoseconds
//            in 8 bytes, an optional a bool first, a list or text its length in 4 bytes first, a variant its place in
//            one.
//
// The first record is Planned, or Continued in a file that goes on where another has ended. No prompt and no key is in
// it. A record of a call comes before the orders that it brought.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "policies/dispatcher.hpp"

namespace headgate::config {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::string_view event_log_begin = "{\"headgate_event_log\":1,";

struct Planned {  // the Dispatcher was made
  policies::Plan plan;
};
struct Arrived {
  Time now{};
  policies::Arrival arrival;
  policies::RequestId id{};  // that it was given
};
struct TurnedAway {  // asked, and refused only with an answer
  Time now{};
  policies::Arrival arrival;
  std::optional<policies::Answer> answer;
};
struct FirstToken {
  Time now{};
  policies::AttemptId attempt;
};
struct Ended {
  Time now{};
  policies::AttemptId attempt;
  policies::Outcome outcome;
};
struct CallerGone {
  Time now{};
  policies::RequestId request{};
};
struct Probed {
  Time now{};
  policies::EndpointId endpoint{};
  policies::ProbeResult result;
};
struct SetByHand {
  Time now{};
  policies::EndpointId endpoint{};
  policies::HandSetting setting;
};
struct Replanned {
  Time now{};
  policies::Plan plan;
};
struct Ticked {
  Time now{};
};
struct Progressed {
  Time now{};
  std::vector<policies::Progress> progress;
};
struct Ordered {
  policies::Order order;
};
struct Gap {  // so many records could not be kept: what follows cannot be replayed
  std::uint64_t lost = 0;
};
struct Closed {  // nothing follows; without it the process was killed, and orders of the last call may be missing
  bool continued = false;  // in the next file
};
struct Continued {  // the state in which the file before this one has ended: Dispatcher::image()
  std::string image;
  std::uint64_t digest = 0;  // image_digest() of it: what was damaged is not restored
};
std::uint64_t image_digest(std::string_view image);

using Event = std::variant<Planned, Arrived, TurnedAway, FirstToken, Ended, CallerGone, Probed, SetByHand, Replanned,
                           Ticked, Ordered, Gap, Closed, Continued, Progressed>;

// Fields of each struct, in the order in which they are written. `a` takes them one after the other.
template <class A>
void visit(A& a, policies::Owner& x) {
  a(x.shard, x.slot);
}
template <class A>
void visit(A& a, policies::AttemptId& x) {
  a(x.request, x.n);
}
template <class A>
void visit(A& a, policies::Arrival& x) {
  a(x.owner, x.route, x.body_bytes, x.tenant, x.klass, x.prompt_tokens, x.max_output_tokens, x.choices, x.stream,
    x.repeat, x.received, x.deadline, x.content_by, x.max_cost_usd, x.min_quality, x.head_within, x.idle_within);
}
template <class A>
void visit(A& a, policies::Outcome& x) {
  a(x.end, x.status, x.retry_after, x.overloaded, x.input_tokens, x.output_tokens, x.estimated);
}
template <class A>
void visit(A& a, policies::ProbeResult& x) {
  a(x.ok);
}
template <class A>
void visit(A& a, policies::HandSetting& x) {
  a(x.drained, x.weight);
}
template <class A>
void visit(A& a, policies::Start& x) {
  a(x.attempt, x.backend, x.endpoint, x.why, x.connect_by, x.first_byte_by, x.first_token_by, x.end_by, x.idle);
}
template <class A>
void visit(A& a, policies::Answer& x) {
  a(x.code, x.retry_after, x.repeat_ok, x.value, x.limit);
}
template <class A>
void visit(A& a, policies::Order& x) {
  a(x.to, x.request, x.what);
}
template <class A>
void visit(A& a, policies::HealthOptions& x) {
  a(x.consecutive_failures, x.success_ratio_min, x.eject, x.eject_max, x.slow_start, x.demote_slow, x.cooldown_first,
    x.cooldown_unadvised_max, x.cooldown_max, x.cooldown_last_backend, x.probe_fall, x.probe_rise, x.probe_interval);
}
template <class A>
void visit(A& a, policies::LimitOptions& x) {
  a(x.mode, x.itl, x.prefill_tokens_max);
}
template <class A>
void visit(A& a, policies::EndpointPlan& x) {
  a(x.id, x.max_in_flight, x.limit, x.health);
}
template <class A>
void visit(A& a, policies::BackendPlan& x) {
  a(x.id, x.endpoint, x.weight);
}
template <class A>
void visit(A& a, policies::QueueOptions& x) {
  a(x.requests_max, x.bytes_max, x.wait_max, x.order);
}
template <class A>
void visit(A& a, policies::PoolOffer& x) {
  a(x.input_usd, x.output_usd, x.quality, x.weight);
}
template <class A>
void visit(A& a, policies::PoolPlan& x) {
  a(x.id, x.backends, x.balance, x.queue, x.offer);
}
template <class A>
void visit(A& a, policies::RetryOptions& x) {
  a(x.attempts_max, x.after_delivery, x.budget_per_success, x.budget_initial, x.budget_max, x.backoff, x.backoff_max);
}
template <class A>
void visit(A& a, policies::TimeoutOptions& x) {
  a(x.connect, x.first_byte, x.first_token, x.idle, x.total_unary, x.total_stream);
}
template <class A>
void visit(A& a, policies::BudgetOptions& x) {
  a(x.ttft, x.itl, x.total, x.max_cost_usd, x.min_quality);
}
template <class A>
void visit(A& a, policies::RoutePlan& x) {
  a(x.id, x.pools, x.order, x.budget, x.timeouts, x.retry, x.default_max_tokens);
}
template <class A>
void visit(A& a, policies::ClassOptions& x) {
  a(x.weight, x.floor, x.wait_max, x.budget);
}
template <class A>
void visit(A& a, policies::TenantLimits& x) {
  a(x.requests_per_minute, x.tokens_per_minute, x.concurrency);
}
template <class A>
void visit(A& a, policies::TenantPlan& x) {
  a(x.id, x.weight, x.klass, x.limits);
}
template <class A>
void visit(A& a, policies::Plan& x) {
  a(x.endpoints, x.pools, x.routes, x.tenants, x.classes, x.seed);
}
template <class A>
void visit(A& a, Planned& x) {
  a(x.plan);
}
template <class A>
void visit(A& a, Arrived& x) {
  a(x.now, x.arrival, x.id);
}
template <class A>
void visit(A& a, TurnedAway& x) {
  a(x.now, x.arrival, x.answer);
}
template <class A>
void visit(A& a, FirstToken& x) {
  a(x.now, x.attempt);
}
template <class A>
void visit(A& a, Ended& x) {
  a(x.now, x.attempt, x.outcome);
}
template <class A>
void visit(A& a, CallerGone& x) {
  a(x.now, x.request);
}
template <class A>
void visit(A& a, Probed& x) {
  a(x.now, x.endpoint, x.result);
}
template <class A>
void visit(A& a, SetByHand& x) {
  a(x.now, x.endpoint, x.setting);
}
template <class A>
void visit(A& a, Replanned& x) {
  a(x.now, x.plan);
}
template <class A>
void visit(A& a, Ticked& x) {
  a(x.now);
}
template <class A>
void visit(A& a, policies::Progress& x) {
  a(x.endpoint, x.gaps, x.gap_sum);
}
template <class A>
void visit(A& a, Progressed& x) {
  a(x.now, x.progress);
}
template <class A>
void visit(A& a, Ordered& x) {
  a(x.order);
}
template <class A>
void visit(A& a, Gap& x) {
  a(x.lost);
}
template <class A>
void visit(A& a, Closed& x) {
  a(x.continued);
}
template <class A>
void visit(A& a, Continued& x) {
  a(x.image, x.digest);
}

// The last value of each enum that is read.
constexpr policies::End last_of(policies::End) { return policies::End::no_socket; }
constexpr policies::Why last_of(policies::Why) { return policies::Why::evacuation; }
constexpr policies::Code last_of(policies::Code) { return policies::Code::cost_budget_unmeetable; }
constexpr policies::Balance last_of(policies::Balance) { return policies::Balance::p2c; }
constexpr policies::LimitMode last_of(policies::LimitMode) { return policies::LimitMode::adaptive; }
constexpr policies::PoolOrder last_of(policies::PoolOrder) { return policies::PoolOrder::weighted; }
constexpr policies::QueueOrder last_of(policies::QueueOrder) { return policies::QueueOrder::adaptive_lifo; }
constexpr policies::Class last_of(policies::Class) { return policies::Class::sheddable; }
constexpr policies::LastCooling last_of(policies::LastCooling) { return policies::LastCooling::attempt; }

template <class T>
inline constexpr bool is_id = std::is_same_v<T, policies::EndpointId> || std::is_same_v<T, policies::BackendId> ||
                              std::is_same_v<T, policies::PoolId> || std::is_same_v<T, policies::RouteId> ||
                              std::is_same_v<T, policies::TenantId> || std::is_same_v<T, policies::RequestId>;

// Writes fields from `at` on, or with a null `at` only counts their bytes.
class EventWriter {
 public:
  explicit EventWriter(char* at) : at_(at) {}
  template <class... T>
  void operator()(T&... fields) {
    (one(fields), ...);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  template <class T>
  void raw(T value) {
    if (at_ != nullptr) std::memcpy(at_ + bytes_, &value, sizeof value);
    bytes_ += sizeof value;
  }
  template <class T>
  void one(T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      raw(static_cast<std::uint8_t>(field));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      raw(field);
    } else {
      visit(*this, field);
    }
  }
  void one(Nanos& field) { raw(field.count()); }
  void one(Time& field) { raw(field.time_since_epoch().count()); }
  void one(std::string& field) {
    raw(static_cast<std::uint32_t>(field.size()));
    if (at_ != nullptr) std::memcpy(at_ + bytes_, field.data(), field.size());
    bytes_ += field.size();
  }
  template <class T>
  void one(std::optional<T>& field) {
    raw(static_cast<std::uint8_t>(field.has_value()));
    if (field) one(*field);
  }
  template <class T>
  void one(std::vector<T>& field) {
    raw(static_cast<std::uint32_t>(field.size()));
    for (T& element : field) one(element);
  }
  template <class T, std::size_t N>
  void one(std::array<T, N>& field) {
    for (T& element : field) one(element);
  }
  template <class... T>
  void one(std::variant<T...>& field) {
    raw(static_cast<std::uint8_t>(field.index()));
    std::visit([this](auto& value) { one(value); }, field);
  }

  char* at_;
  std::size_t bytes_ = 0;
};

// Most bytes of a record, but for those with a plan, a list or an image.
inline constexpr std::size_t plain_event_bytes_max = 160;

namespace detail {
template <class E, class... T>
constexpr std::uint8_t place_of(std::variant<T...>*) {
  std::uint8_t place = 0;
  const bool found = ((std::is_same_v<E, T> || (++place, false)) || ...);
  return found ? place : 0xff;
}
}  // namespace detail

// Bytes written to `at`, or with a null `at` needed. The event is not changed.
template <class E>
std::size_t write_event(E& event, char* at) {
  EventWriter writer(at);
  std::uint8_t place = detail::place_of<E>(static_cast<Event*>(nullptr));
  writer(place, event);
  return writer.bytes();
}

struct EventLogHead {
  std::string build;         // that wrote it
  std::string_view records;  // what follows the first line
  std::string problem;       // empty, or what is wrong with the first line
};
EventLogHead read_event_log_head(std::string_view log);

// Reads one record after the other.
class EventReader {
 public:
  enum class Read : std::uint8_t { event, end, cut, wrong };  // cut: the text ends within a record
  explicit EventReader(std::string_view text) : text_(text) {}
  Read next(Event& out);
  std::size_t offset() const { return begin_; }  // of the record that was read last, or could not be

 private:
  std::string_view text_;
  std::size_t begin_ = 0, at_ = 0;
};

}  // namespace headgate::config
