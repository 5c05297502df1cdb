#include "config/event_codec.hpp"

#include <gtest/gtest.h>

#include <array>

namespace headgate::config {
namespace {

// Gives every field a value of its own that is not its default.
class Filler {
 public:
  template <class... T>
  void operator()(T&... fields) {
    (one(fields), ...);
  }
  template <class T>
  void one(T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      field = !field;
    } else if constexpr (std::is_arithmetic_v<T> || is_id<T>) {
      field = static_cast<T>(++n_);
    } else if constexpr (std::is_enum_v<T>) {
      field = last_of(field);
    } else {
      visit(*this, field);
    }
  }
  void one(std::string& field) { field = std::to_string(++n_); }
  void one(Nanos& field) { field = Nanos(++n_); }
  void one(Time& field) { field = Time(Nanos(++n_)); }
  template <class T>
  void one(std::optional<T>& field) {
    one(field.emplace());
  }
  template <class T>
  void one(std::vector<T>& field) {
    field.resize(2);
    for (T& element : field) one(element);
  }
  template <class T, std::size_t N>
  void one(std::array<T, N>& field) {
    for (T& element : field) one(element);
  }
  template <class... T>
  void one(std::variant<T...>& field) {
    std::visit([this](auto& value) { one(value); }, field);
  }

 private:
  int n_ = 0;
};

std::string written(Event event) {
  return std::visit(
      [](auto& one) {
        std::string text(write_event(one, nullptr), '\0');
        EXPECT_EQ(write_event(one, text.data()), text.size());
        return text;
      },
      event);
}

template <std::size_t... I>
std::array<Event, sizeof...(I)> one_of_each(std::index_sequence<I...>) {
  return {Event(std::in_place_index<I>)...};
}

std::vector<Event> examples() {
  std::vector<Event> all;
  for (Event& event : one_of_each(std::make_index_sequence<std::variant_size_v<Event>>())) {
    Filler filler;
    filler.one(event);
    all.push_back(event);
  }
  Ordered answer{{.to = {}, .request = {}, .what = policies::Answer{}}};
  Filler filler;
  filler.one(answer);
  all.emplace_back(answer);
  return all;
}

TEST(EventCodec, ReadsWhatItWrote) {
  std::string text;
  const std::vector<Event> all = examples();
  for (const Event& event : all) {
    const std::string record = written(event);
    EXPECT_EQ(record[0], static_cast<char>(event.index()));
    if (!std::holds_alternative<Planned>(event) && !std::holds_alternative<Replanned>(event)) {
      EXPECT_LE(record.size(), plain_event_bytes_max) << event.index();
    }
    text += record;
  }
  EventReader reader(text);
  for (const Event& event : all) {
    Event read;
    ASSERT_EQ(reader.next(read), EventReader::Read::event) << event.index();
    EXPECT_EQ(read.index(), event.index());
    EXPECT_EQ(written(read), written(event)) << event.index();
  }
  Event none;
  EXPECT_EQ(reader.next(none), EventReader::Read::end);
}

TEST(EventCodec, SaysWhereARecordIsCutOff) {
  for (const Event& event : examples()) {
    const std::string record = written(event);
    for (std::size_t n = 1; n < record.size(); ++n) {
      EventReader reader(std::string_view(record).substr(0, n));
      Event read;
      ASSERT_EQ(reader.next(read), EventReader::Read::cut) << event.index() << " after " << n;
      EXPECT_EQ(reader.offset(), 0u);
    }
  }
}

TEST(EventCodec, TakesNoValueThatMeansNothing) {
  Event read;
  const auto refused = [&](std::string text) {
    EventReader reader(text);
    return reader.next(read) == EventReader::Read::wrong;
  };
  EXPECT_TRUE(refused(std::string(1, static_cast<char>(std::variant_size_v<Event>))));
  std::string probed = written(Probed{});
  probed.back() = 2;  // neither true nor false
  EXPECT_TRUE(refused(probed));
  std::string ended = written(Ended{});
  ended[1 + 8 + 9] = 14;  // behind End::no_socket
  EXPECT_TRUE(refused(ended));
  ended[1 + 8 + 9] = 13;
  EXPECT_FALSE(refused(ended));
}

// Whoever adds a field to one of these must name it in visit() too: then the number here changes.
TEST(EventCodec, NamesEveryField) {
  [[maybe_unused]] const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17] =
      policies::Arrival{};
  [[maybe_unused]] const auto& [o1, o2, o3, o4, o5, o6, o7] = policies::Outcome{};
  [[maybe_unused]] const auto& [c1, c2, c3, c4] = policies::ClassOptions{};
  [[maybe_unused]] const auto& [v1, v2, v3] = policies::TenantLimits{};
  [[maybe_unused]] const auto& [x1, x2, x3, x4] = policies::TenantPlan{};
  [[maybe_unused]] const auto& [s1, s2, s3, s4, s5, s6, s7, s8, s9] = policies::Start{};
  [[maybe_unused]] const auto& [w1, w2, w3, w4, w5] = policies::Answer{};
  [[maybe_unused]] const auto& [d1, d2] = policies::HandSetting{};
  [[maybe_unused]] const auto& [h1, h2, h3, h4, h5, h6, h7, h8, h9, h10, h11, h12, h13] = policies::HealthOptions{};
  [[maybe_unused]] const auto& [e1, e2, e3, e4] = policies::EndpointPlan{};
  [[maybe_unused]] const auto& [l1, l2, l3] = policies::LimitOptions{};
  [[maybe_unused]] const auto& [g1, g2, g3, g4, g5] = policies::BudgetOptions{};
  [[maybe_unused]] const auto& [k1, k2, k3] = policies::Progress{};
  [[maybe_unused]] const auto& [b1, b2, b3] = policies::BackendPlan{};
  [[maybe_unused]] const auto& [q1, q2, q3, q4] = policies::QueueOptions{};
  [[maybe_unused]] const auto& [p1, p2, p3, p4, p5] = policies::PoolPlan{};
  [[maybe_unused]] const auto& [f1, f2, f3, f4] = policies::PoolOffer{};
  [[maybe_unused]] const auto& [r1, r2, r3, r4, r5, r6, r7] = policies::RetryOptions{};
  [[maybe_unused]] const auto& [t1, t2, t3, t4, t5, t6] = policies::TimeoutOptions{};
  [[maybe_unused]] const auto& [u1, u2, u3, u4, u5, u6, u7] = policies::RoutePlan{};
  [[maybe_unused]] const auto& [n1, n2, n3, n4, n5, n6] = policies::Plan{};
}

TEST(EventCodec, ReadsTheFirstLine) {
  const std::string good = std::string(event_log_begin) + "\"build\":\"1.2\",\"config\":{}}\nrest";
  const EventLogHead head = read_event_log_head(good);
  EXPECT_EQ(head.problem, "");
  EXPECT_EQ(head.build, "1.2");
  EXPECT_EQ(head.records, "rest");
  EXPECT_EQ(read_event_log_head("TIMESTAMP,x\n").problem, "this is no event log of format 1");
  EXPECT_EQ(read_event_log_head(good.substr(0, 40)).problem, "its first line is broken");
  EXPECT_EQ(read_event_log_head(std::string(event_log_begin) + "\"build\":7}\n").problem, "its first line is broken");
}

}  // namespace
}  // namespace headgate::config
