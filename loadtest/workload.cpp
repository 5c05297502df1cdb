#include "loadtest/workload.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/text_file.hpp"
#include "config/bind_policies.hpp"
#include "config/field.hpp"
#include "config/forms.hpp"
#include "config/read.hpp"
#include "loadtest/lengths.hpp"
#include "policies/base/random.hpp"

namespace headgate::config {

using namespace std::chrono_literals;

template <>
struct EnumNames<loadtest::Gaps> {
  static constexpr std::array all{std::pair{loadtest::Gaps::poisson, "poisson"},
                                  std::pair{loadtest::Gaps::gamma, "gamma"}};
};

template <>
struct EnumNames<loadtest::LengthsKind> {
  static constexpr std::array all{std::pair{loadtest::LengthsKind::fixed, "fixed"},
                                  std::pair{loadtest::LengthsKind::azure_conv, "azure-conv"}};
};

template <>
struct Describe<loadtest::RatePoint> {
  static constexpr auto fields() {
    using R = loadtest::RatePoint;
    return std::tuple{field("at", &R::at, "From when on, since the start.", Range<Nanos>{0s, 720h}),
                      required(field("per_s", &R::per_s, "Requests per second.", Range<double>{0, 1e6})),
                      field("ramp", &R::ramp, "Reached evenly from the rate before.")};
  }
};

inline constexpr Text limits_form{"ttft=1s,tpot=50ms", ".*", [](std::string_view text) {
                                    std::string problem;
                                    return loadtest::parse_slo(text, problem) ? "" : "must be limits: " + problem;
                                  }};

template <>
struct Describe<loadtest::WorkloadClass> {
  static constexpr auto fields() {
    using W = loadtest::WorkloadClass;
    constexpr Range<std::uint32_t> tokens{1, loadtest::trace_tokens_max};
    return std::tuple{
        field("model", &W::model, "What is asked for.", forms::model),
        field("class", &W::klass, "As x-headgate-class."),
        field("tenant", &W::tenant, "Who asks; only for simulate.", forms::name),
        required(field("rate", &W::rate, "Requests per second, over time.", List<Any>{1, 10'000, {}})),
        field("arrivals", &W::arrivals, "How the gaps are distributed."),
        field("cv", &W::cv, "Coefficient of variation of the gaps, with gamma.", Range<double>{0.05, 20}),
        field("lengths", &W::lengths, "How prompts and answers are distributed."),
        field("prompt_tokens", &W::prompt_tokens, "With fixed lengths.", tokens),
        field("output_tokens", &W::output_tokens, "With fixed lengths.", tokens),
        field("stream_share", &W::stream_share, "Of the requests.", Range<double>{0, 1}),
        absent_means("no limit",
                     field("max_cost_usd", &W::max_cost_usd, "As x-headgate-max-cost-usd.", Range<double>{0, 1e6})),
        absent_means("any", field("min_quality", &W::min_quality, "As x-headgate-min-quality.", Range<double>{0, 1})),
        field("slo", &W::slo, "What counts as goodput.", limits_form)};
  }
};

template <>
struct Describe<loadtest::Workload> {
  static constexpr auto fields() {
    using W = loadtest::Workload;
    return std::tuple{required(field("duration", &W::duration, "How long requests arrive.", Range<Nanos>{1ms, 720h})),
                      required(field("classes", &W::classes, "Kinds of requests.",
                                     Named{1, loadtest::traffic_classes_max, forms::name, "CLASS"}))};
  }
};

}  // namespace headgate::config

namespace headgate::loadtest {
namespace {

constexpr std::uint64_t use_class = 300, use_class_stream = 301;  // of draw()

// What the field descriptions cannot say.
void check_rates(const Workload& workload, const config::Place& root, config::Problems& problems) {
  const config::Place classes = root.member("classes");
  for (const auto& [name, one] : workload.classes) {
    const config::Place rates = classes.member(name).member("rate");
    if (rates.faulty() || !rates.written()) continue;
    double highest = 0;
    for (std::size_t n = 0; n < one.rate.size(); ++n) {
      const config::Place place = rates.item(n);
      if (n == 0 && one.rate[n].at != Nanos(0)) problems.add(place.line, place.path, "the first rate must be at 0s");
      if (n == 0 && one.rate[n].ramp)
        problems.add(place.line, place.path, "the first rate has none before it to ramp from");
      if (n > 0 && one.rate[n].at <= one.rate[n - 1].at)
        problems.add(place.line, place.path, "at must be later than that of the rate before");
      highest = std::max(highest, one.rate[n].per_s);
    }
    if (highest == 0) problems.add(rates.line, rates.path, "no rate is over 0");
  }
}

// Turns a sum of gaps in units of the mean gap into the time at which so many requests are due: a unit-rate process on
// the clock of the integrated rate (time rescaling; Lewis and Shedler, Simulation of Nonhomogeneous Poisson Processes,
// 1979).
class RateClock {
 public:
  RateClock(const std::vector<RatePoint>& points, Nanos duration) : points_(points), end_s_(seconds(duration)) {}

  // `due` must not fall; nothing: after the end.
  std::optional<double> at_s(double due) {
    for (; piece_ < points_.size(); ++piece_) {
      const double begin = seconds(points_[piece_].at);
      const bool last = piece_ + 1 == points_.size();
      const double end = last ? end_s_ : std::min(seconds(points_[piece_ + 1].at), end_s_);
      if (begin >= end_s_) return std::nullopt;
      const double from = points_[piece_].per_s;
      // Cut off by the end of the run, a ramp goes as far as it has come.
      const bool ramps = !last && points_[piece_ + 1].ramp;
      const double slope = ramps ? (points_[piece_ + 1].per_s - from) / (seconds(points_[piece_ + 1].at) - begin) : 0;
      const double length = end - begin, holds = from * length + slope * length * length / 2;
      if (due <= before_ + holds) return begin + into(due - before_, from, slope, length);
      before_ += holds;
    }
    return std::nullopt;
  }

 private:
  static double seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

  // t with from t + slope t^2 / 2 = due, in the form that loses no digits for small slopes.
  static double into(double due, double from, double slope, double length) {
    const double root = std::sqrt(std::max(0.0, from * from + 2 * slope * due));
    return from + root > 0 ? std::min(2 * due / (from + root), length) : 0;
  }

  const std::vector<RatePoint>& points_;
  double end_s_, before_ = 0;  // before_: due at the beginning of the piece
  std::size_t piece_ = 0;
};

// The arrivals of one class, one after the other.
class ClassArrivals {
 public:
  ClassArrivals(const WorkloadClass& one, Nanos duration, std::uint64_t seed, std::uint8_t number)
      : one_(one), clock_(one.rate, duration), seed_(seed), number_(number) {
    draw_next();
  }
  const std::optional<Planned>& next() const { return next_; }
  void draw_next() {
    const auto gap = id_ == 0 ? first_gamma_gap : gamma_gap;
    due_ += one_.arrivals == Gaps::gamma ? gap(one_.cv, seed_, id_) : exponential_gap(seed_, id_);
    const auto at_s = clock_.at_s(due_);
    next_.reset();
    if (!at_s) return;
    Lengths lengths{one_.prompt_tokens, one_.output_tokens};
    if (one_.lengths == LengthsKind::azure_conv) lengths = azure_conv_lengths(seed_, id_);
    next_ = {.at = Nanos(std::llround(*at_s * 1e9)),
             .input = lengths.input,
             .output = lengths.output,
             .stream = unit(draw(seed_, id_, use_class_stream)) < one_.stream_share,
             .traffic_class = number_};
    ++id_;
  }

 private:
  const WorkloadClass& one_;
  RateClock clock_;
  std::uint64_t seed_, id_ = 0;
  std::uint8_t number_;
  double due_ = 0;
  std::optional<Planned> next_;
};

}  // namespace

WorkloadResult read_workload(std::string_view text, const std::string& name, const std::string& slo) {
  WorkloadResult result;
  config::Problems problems;
  if (const auto tree = config::read_tree(text, problems)) {
    const config::Place root{&*tree, "$", tree->line};
    config::Reader(config::process_environment(), problems).object(root, result.workload);
    if (problems.empty()) check_rates(result.workload, root, problems);
  }
  for (const config::Problem& problem : problems.take()) {
    if (!result.problem.empty()) result.problem += '\n';
    result.problem += config::to_text(problem, name);
  }
  for (const auto& [class_name, one] : result.workload.classes) {
    if (!result.problem.empty()) break;
    const auto limits = parse_slo(one.slo.empty() ? slo : one.slo, result.problem);
    if (limits)
      result.classes.push_back({class_name,
                                one.model,
                                one.klass,
                                one.tenant,
                                {},
                                one.max_cost_usd.value_or(policies::unlimited_usd),
                                one.min_quality.value_or(0),
                                *limits});
  }
  return result;
}

WorkloadResult read_workload_file(const std::string& path, const std::string& slo) {
  std::string problem;
  const auto text = backends::read_text_file(path, config::file_bytes_max, problem);
  if (!text) return {.problem = "workload " + path + " " + problem};
  return read_workload(*text, path, slo);
}

std::vector<Planned> draw_workload(const Workload& workload, std::uint64_t seed, std::uint64_t limit) {
  const std::uint64_t most = limit == 0 ? trace_lines_max + 1 : limit;
  std::vector<ClassArrivals> classes;
  for (const auto& [name, one] : workload.classes) {
    const auto number = static_cast<std::uint8_t>(classes.size());
    classes.emplace_back(one, workload.duration, draw(seed, number, use_class), number);
  }
  const auto sooner = [](const ClassArrivals& a, const ClassArrivals& b) {
    return a.next() && (!b.next() || a.next()->at < b.next()->at);
  };
  std::vector<Planned> requests;
  while (requests.size() < most) {
    ClassArrivals& first = *std::ranges::min_element(classes, sooner);
    if (!first.next()) break;
    requests.push_back(*first.next());
    first.draw_next();
  }
  return requests;
}

}  // namespace headgate::loadtest
