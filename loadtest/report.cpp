#include "loadtest/report.hpp"

#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <ostream>

namespace headgate::loadtest {
namespace {

double seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }
double rounded(double value) { return std::round(value * 1000) / 1000; }
double ms(double us) { return rounded(us / 1000); }

Summary latency(const Histogram& histogram) {
  return {{"count", histogram.count()},
          {"p50", ms(histogram.quantile_us(0.5))},
          {"p90", ms(histogram.quantile_us(0.9))},
          {"p99", ms(histogram.quantile_us(0.99))},
          {"max", ms(histogram.max_us())}};
}

// Of all requests, or of those of one class.
struct Latencies {
  Histogram ttft, tpot, gap, e2e, queued, itl;
  std::uint64_t attempts = 0, begun = 0;  // begun: with an attempt

  void add(const Record& record) {
    if (const auto value = record.ttft()) ttft.record(*value);
    if (const auto value = record.tpot()) tpot.record(*value);
    if (record.content_events > 1 && record.stream) gap.record(record.gap_max);
    if (record.outcome == Outcome::ok || record.outcome == Outcome::wrong_count) e2e.record(record.e2e());
    if (record.attempts == 0) return;
    queued.record(record.queued);
    attempts += record.attempts;
    ++begun;
  }

  Summary shown(bool simulated) const {
    Summary gaps = latency(itl);
    gaps["p005"] = ms(itl.quantile_us(0.005));
    gaps["p995"] = ms(itl.quantile_us(0.995));
    Summary all = {{"ttft_ms", latency(ttft)},
                   {"tpot_ms", latency(tpot)},
                   {"itl_ms", gaps},
                   {"gap_ms", latency(gap)},
                   {"e2e_ms", latency(e2e)}};
    if (simulated) all["queue_ms"] = latency(queued);
    all["attempts_per_request"] =
        begun == 0 ? 0.0 : rounded(static_cast<double>(attempts) / static_cast<double>(begun));
    return all;
  }
};

Summary goodput(const std::string& limits, std::uint64_t good, std::uint64_t of, double duration_s) {
  return {{"slo", limits},
          {"requests", good},
          {"per_s", duration_s > 0 ? rounded(static_cast<double>(good) / duration_s) : 0.0},
          {"share", of == 0 ? 0.0 : rounded(static_cast<double>(good) / static_cast<double>(of))}};
}

Summary by_class(const RunResult& result, std::size_t number) {
  Latencies latencies;
  latencies.itl = result.tally.itl(static_cast<std::uint8_t>(number));
  std::array<std::uint64_t, 8> outcomes{};
  std::map<std::string, std::uint64_t> refused_by;
  std::uint64_t requests = 0, good = 0;
  for (const Record& record : result.records) {
    if (record.traffic_class != number || record.outcome == Outcome::pending) continue;
    latencies.add(record);
    ++requests;
    ++outcomes[static_cast<std::size_t>(record.outcome)];
    if (record.outcome == Outcome::refused) ++refused_by[result.names[record.reason]];
    good += result.tally.good(record) ? 1 : 0;
  }
  const TrafficClass& one = result.tally.classes()[number];
  const auto count = [&](Outcome outcome) { return outcomes[static_cast<std::size_t>(outcome)]; };
  Summary row = {{"route", one.model},
                 {"requests", requests},
                 {"ok", count(Outcome::ok)},
                 {"refused", count(Outcome::refused)},
                 {"refused_by", refused_by.empty() ? Summary::object() : Summary(refused_by)},
                 {"failed_before_first_token", count(Outcome::failed_before_first_token)},
                 {"cut", count(Outcome::cut) + count(Outcome::cut_dirty)},
                 {"left", count(Outcome::left)},
                 {"wrong_count", count(Outcome::wrong_count)}};
  const std::string& limits = one.slo.text;
  row["goodput"] = goodput(limits.empty() ? "no limits" : limits, good, requests, seconds(result.duration));
  row.update(latencies.shown(result.simulated));
  return row;
}

Summary by_backend(const RunResult& result) {
  std::map<std::string, std::map<Outcome, std::uint64_t>> counts;
  for (const Record& record : result.records) {
    if (record.backend != 0 && record.outcome != Outcome::pending)
      ++counts[result.names[record.backend]][record.outcome];
  }
  Summary list = Summary::object();
  for (const auto& [name, outcomes] : counts) {
    std::uint64_t all = 0;
    for (const auto& [outcome, n] : outcomes) all += n;
    Summary row = {{"requests", all}};
    for (const auto& [outcome, n] : outcomes) row[std::string{name_of(outcome)}] = n;
    list[name] = row;
  }
  return list;
}

Summary servers(const RunResult& result) {
  Summary list = Summary::object();
  for (const ServerUse& server : result.servers) {
    const auto prompt = static_cast<double>(std::max<std::uint64_t>(server.prompt_tokens, 1));
    list[server.name] = {{"busy", rounded(server.busy)},
                         {"batch", rounded(server.batch)},
                         {"kv_held", rounded(server.kv_held)},
                         {"prompt_tokens", server.prompt_tokens},
                         {"cached", rounded(static_cast<double>(server.cached_tokens) / prompt)},
                         {"output_tokens", server.output_tokens},
                         {"preemptions", server.preemptions}};
    if (server.cost_usd > 0) list[server.name]["cost_usd"] = std::round(server.cost_usd * 1e6) / 1e6;
  }
  return list;
}

Nanos next_kill(const RunResult& result, std::size_t k) {
  Nanos next = Nanos::max();
  for (std::size_t other = 0; other < result.events.size(); ++other) {
    const bool same = result.events[other].kill == result.events[k].kill;
    const bool begun = result.happened[other].state != Happened::State::waiting;
    if (same && begun && result.happened[other].begun > result.happened[k].begun) {
      next = std::min(next, result.happened[other].begun);
    }
  }
  return next;
}

void add_timeline(Summary& summary, const RunResult& result) {
  Summary events = Summary::array(), kills = Summary::array();
  std::uint64_t cut_by_kills = 0;
  for (std::size_t k = 0; k < result.events.size(); ++k) {
    const Happened& happened = result.happened[k];
    const bool begun = happened.state != Happened::State::waiting;
    Summary row = {{"label", result.events[k].label}, {"happened", begun}};
    if (begun) row["at_s"] = rounded(seconds(happened.begun));
    if (happened.state == Happened::State::done) row["exit_code"] = happened.exit_code;
    events.push_back(row);
    if (!begun || result.events[k].kill.empty()) continue;
    KillBounds bounds;
    bounds.next_kill_of_it = next_kill(result, k);
    bounds.slack += Nanos{static_cast<std::int64_t>(2e3 * result.tally.lag.max_us())};
    const KillAnalysis kill = analyse_kill(result.events[k], happened, bounds, result.records, result.names);
    cut_by_kills += kill.cut + kill.cut_dirty;
    kills.push_back({{"backend", kill.backend},
                     {"at_s", rounded(seconds(kill.at))},
                     {"sending", kill.sending},
                     {"cut", kill.cut},
                     {"cut_dirty", kill.cut_dirty},
                     {"cut_wanted", result.events[k].streams_min},
                     {"finished_on_the_way", kill.finished_on_the_way},
                     {"begun_on_the_way", kill.begun_on_the_way},
                     {"slack_ms", rounded(static_cast<double>(bounds.slack.count()) / 1e6)},
                     {"unexplained", kill.unexplained},
                     {"exact", kill.exact},
                     {"ttft_p99_before_ms", rounded(kill.ttft_p99_before_ms)},
                     {"ttft_p99_after_ms", rounded(kill.ttft_p99_after_ms)},
                     {"cost_ms", rounded(kill.ttft_p99_after_ms - kill.ttft_p99_before_ms)}});
  }
  summary["cut_elsewhere"] =
      summary["cut"].get<std::uint64_t>() + summary["cut_dirty"].get<std::uint64_t>() - cut_by_kills;
  summary["events"] = events;
  summary["kills"] = kills;
}

// Details of the first few: a wrong count names what was asked and what came.
Summary examples(const RunResult& result, Outcome outcome) {
  Summary list = Summary::array();
  for (std::size_t id = 0; id < result.records.size() && list.size() < 5; ++id) {
    const Record& record = result.records[id];
    if (record.outcome == outcome) {
      list.push_back(
          {{"request", id}, {"backend", result.names[record.backend]}, {"reason", result.names[record.reason]}});
    }
  }
  return list;
}

}  // namespace

Summary summarize(const RunResult& result) {
  const Tally& tally = result.tally;
  const auto count = [&](Outcome outcome) { return tally.outcomes[static_cast<std::size_t>(outcome)]; };
  const double duration_s = seconds(result.duration);
  Summary summary = {{"requests", tally.whole().ended}, {"planned", result.records.size()}};
  summary["duration_s"] = rounded(duration_s);
  summary["ok"] = count(Outcome::ok);
  summary["refused"] = count(Outcome::refused);
  summary["refused_by"] = tally.refused_by.empty() ? Summary::object() : Summary(tally.refused_by);
  summary["failed_before_first_token"] = count(Outcome::failed_before_first_token);
  summary["failed_by"] = tally.failed_by.empty() ? Summary::object() : Summary(tally.failed_by);
  summary["cut"] = count(Outcome::cut);
  summary["cut_dirty"] = count(Outcome::cut_dirty);
  summary["left"] = count(Outcome::left);
  summary["retries"] = std::accumulate(result.records.begin(), result.records.end(), std::uint64_t{0},
                                       [](std::uint64_t sum, const Record& one) { return sum + one.sends - 1; });
  summary["wrong_count"] = count(Outcome::wrong_count);
  if (count(Outcome::wrong_count) > 0) summary["wrong_count_examples"] = examples(result, Outcome::wrong_count);
  if (count(Outcome::cut_dirty) > 0) summary["cut_dirty_examples"] = examples(result, Outcome::cut_dirty);
  summary["goodput"] = goodput(tally.limits(), tally.whole().good, tally.whole().ended, duration_s);
  summary["goodput"]["since_last_send_per_s"] = rounded(static_cast<double>(tally.good_since_last_send) / duration_s);
  Latencies latencies;
  for (const Record& record : result.records) latencies.add(record);
  for (std::size_t n = 0; n < tally.classes().size(); ++n) latencies.itl.merge(tally.itl(static_cast<std::uint8_t>(n)));
  summary.update(latencies.shown(result.simulated));
  if (!tally.classes().front().name.empty()) {
    for (std::size_t n = 0; n < tally.classes().size(); ++n)
      summary["classes"][tally.classes()[n].name] = by_class(result, n);
  }
  summary["backends"] = by_backend(result);
  if (!result.servers.empty()) {
    summary["servers"] = servers(result);
    const double cost = std::accumulate(result.servers.begin(), result.servers.end(), 0.0,
                                        [](double sum, const ServerUse& server) { return sum + server.cost_usd; });
    if (cost > 0) summary["cost_usd"] = std::round(cost * 1e6) / 1e6;
  }
  if (!result.faults.empty()) summary["faults"] = result.faults;
  if (result.simulated) return summary;
  summary["lag_ms"] = {{"p99", ms(tally.lag.quantile_us(0.99))}, {"max", ms(tally.lag.max_us())}};
  summary["connections"] = result.connected;
  summary["interrupted"] = result.interrupted;
  add_timeline(summary, result);
  return summary;
}

void write_records(std::ostream& out, const RunResult& result) {
  const auto stamp = [](Nanos time) { return rounded(static_cast<double>(time.count()) / 1e6); };
  for (std::size_t id = 0; id < result.records.size(); ++id) {
    const Record& record = result.records[id];
    if (record.outcome == Outcome::pending) continue;
    Summary line = {{"request", id},
                    {"stream", record.stream},
                    {"class", result.tally.classes()[record.traffic_class].name},
                    {"model", result.tally.classes()[record.traffic_class].model},
                    {"outcome", name_of(record.outcome)},
                    {"reason", result.names[record.reason]},
                    {"status", record.status},
                    {"backend", result.names[record.backend]},
                    {"attempts", record.attempts},
                    {"sends", record.sends},
                    {"intended_ms", stamp(record.intended)},
                    {"lag_ms", stamp(record.sent - record.intended)},
                    {"e2e_ms", stamp(record.e2e())},
                    {"tokens", record.content_events},
                    {"reported_input", record.reported_input},
                    {"reported_output", record.reported_output}};
    if (const auto ttft = record.ttft()) line["ttft_ms"] = stamp(*ttft);
    if (const auto tpot = record.tpot()) line["tpot_ms"] = stamp(*tpot);
    if (record.stream) line["gap_ms"] = stamp(record.gap_max);
    out << line.dump() << '\n';
  }
}

}  // namespace headgate::loadtest
