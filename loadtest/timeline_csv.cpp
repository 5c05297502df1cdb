#include "loadtest/timeline_csv.hpp"

#include <algorithm>
#include <ostream>

#include "loadtest/nearest_rank.hpp"

namespace headgate::loadtest {
namespace {

constexpr std::size_t seconds_max = 1'000'000;

struct Second {
  std::uint64_t sent = 0, ok = 0, refused = 0, failed = 0, cut = 0, left = 0, good = 0;
  std::vector<Nanos> ttft;
};

std::size_t second_of(Nanos time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time).count();
  return std::min(static_cast<std::size_t>(std::max<std::int64_t>(second, 0)), seconds_max - 1);
}

void count(const Record& record, Second& in) {
  switch (record.outcome) {
    case Outcome::ok:
    case Outcome::wrong_count:
      ++in.ok;
      break;
    case Outcome::refused:
      ++in.refused;
      break;
    case Outcome::failed_before_first_token:
      ++in.failed;
      break;
    case Outcome::cut:
    case Outcome::cut_dirty:
      ++in.cut;
      break;
    case Outcome::left:
      ++in.left;
      break;
    case Outcome::pending:
      break;
  }
}

}  // namespace

void write_timeline(std::ostream& out, const RunResult& result) {
  std::vector<Second> seconds;
  const auto at = [&](Nanos time) -> Second& {
    const std::size_t second = second_of(time);
    if (second >= seconds.size()) seconds.resize(second + 1);
    return seconds[second];
  };
  for (const Record& record : result.records) {
    if (record.outcome == Outcome::pending) continue;
    ++at(record.intended).sent;
    Second& end = at(record.ended);
    count(record, end);
    end.good += result.tally.good(record) ? 1 : 0;
    if (record.first) at(*record.first).ttft.push_back(*record.ttft());
  }
  out << "second,sent,ok,refused,failed,cut,left,good,in_progress,ttft_p50_ms,ttft_p99_ms\n";
  std::uint64_t in_progress = 0;
  for (std::size_t n = 0; n < seconds.size(); ++n) {
    Second& one = seconds[n];
    in_progress += one.sent;
    in_progress -= one.ok + one.refused + one.failed + one.cut + one.left;
    out << n << ',' << one.sent << ',' << one.ok << ',' << one.refused << ',' << one.failed << ',' << one.cut << ','
        << one.left << ',' << one.good << ',' << in_progress << ',';
    std::ranges::sort(one.ttft);
    if (!one.ttft.empty()) out << nearest_rank_ms(one.ttft, 0.5) << ',' << nearest_rank_ms(one.ttft, 0.99);
    out << (one.ttft.empty() ? ",\n" : "\n");
  }
}

}  // namespace headgate::loadtest
