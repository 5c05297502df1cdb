#include "loadtest/sim/replay.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/event_codec.hpp"
#include "loadtest/mapped_file.hpp"
#include "loadtest/output.hpp"
#include "policies/answer_codes.hpp"
#include "policies/queue.hpp"

namespace headgate::loadtest {
namespace {

using config::EventReader;

constexpr int all_equal = 0, not_equal = 1, not_readable = 2;

// Which ids a list names; none if one comes twice or is higher than a process gives out.
template <class List>
std::optional<std::vector<bool>> ids_of(const List& list) {
  constexpr std::size_t ids_max = 65'536;
  std::vector<bool> known;
  for (const auto& one : list) {
    const std::size_t id = policies::index(one.id);
    if (id >= ids_max || (id < known.size() && known[id])) return std::nullopt;
    if (id >= known.size()) known.resize(id + 1);
    known[id] = true;
  }
  return known;
}

// A Dispatcher may trust its plan; a file may hold anything.
bool sound(const policies::Plan& plan) {
  const auto endpoints = ids_of(plan.endpoints), pools = ids_of(plan.pools), routes = ids_of(plan.routes);
  if (!endpoints || !pools || !routes) return false;
  const auto has = [](const std::vector<bool>& known, auto id) {
    return policies::index(id) < known.size() && known[policies::index(id)];
  };
  for (const policies::PoolPlan& pool : plan.pools) {
    if (!ids_of(pool.backends)) return false;
    for (const policies::BackendPlan& backend : pool.backends) {
      if (!has(*endpoints, backend.endpoint) || backend.weight == 0) return false;
    }
  }
  return std::ranges::all_of(plan.routes, [&](const policies::RoutePlan& route) {
    return route.pools.size() <= policies::pools_max &&
           std::ranges::all_of(route.pools, [&](policies::PoolId id) { return has(*pools, id); });
  });
}

// As it would stand in the log: what differs there differs in effect.
std::string written(const policies::Order& order) {
  std::string text(config::plain_event_bytes_max, '\0');
  config::Ordered ordered{order};
  text.resize(config::write_event(ordered, text.data()));
  return text;
}

std::string shown(const policies::Order& order) {
  char text[400];
  const auto request = static_cast<unsigned long long>(order.request);
  const auto s = [](auto time) {
    if constexpr (std::is_same_v<decltype(time), Time>) {
      return std::chrono::duration<double>(time.time_since_epoch()).count();
    } else {
      return std::chrono::duration<double>(time).count();
    }
  };
  if (const auto* start = std::get_if<policies::Start>(&order.what)) {
    std::snprintf(
        text, sizeof text,
        "start request %llx, attempt %u, at backend %zu of endpoint %zu (why %d), connect by %.9f, first byte by "
        "%.9f, first token by %.9f, end by %.9f, idle %.9f",
        request, unsigned{start->attempt.n}, policies::index(start->backend), policies::index(start->endpoint),
        static_cast<int>(start->why), s(start->connect_by), s(start->first_byte_by), s(start->first_token_by),
        s(start->end_by), s(start->idle));
  } else {
    const auto& answer = std::get<policies::Answer>(order.what);
    std::snprintf(text, sizeof text, "answer request %llx with %s, value %lld of %lld, retry after %.9f s%s", request,
                  std::string(policies::answer_code(answer.code).name).c_str(), static_cast<long long>(answer.value),
                  static_cast<long long>(answer.limit), s(answer.retry_after),
                  answer.repeat_ok ? ", may be repeated" : "");
  }
  return text;
}

std::string shown(policies::RequestId id) {
  char text[40];
  std::snprintf(text, sizeof text, "request %llx", static_cast<unsigned long long>(id));
  return text;
}

class Replay {
 public:
  explicit Replay(Replayed& out) : out_(out) {}

  // False: stop, out says why.
  bool operator()(config::Planned& event) {
    if (dispatcher_) return wrong("a second beginning");
    if (!sound(event.plan)) return wrong("a plan that names what it does not have");
    dispatcher_ = std::make_unique<policies::Dispatcher>(std::move(event.plan));
    ++out_.plans;
    return true;
  }
  bool operator()(const config::Continued& event) {
    if (dispatcher_) return wrong("a second beginning");
    if (config::image_digest(event.image) != event.digest) return wrong("the state that it goes on from is damaged");
    dispatcher_ = std::make_unique<policies::Dispatcher>(policies::Plan{});
    if (!dispatcher_->restore(event.image)) return wrong("the state that it goes on from is another build's");
    ++out_.plans;
    return true;
  }
  bool operator()(const config::Arrived& event) {
    if (!call(event.now)) return false;
    const policies::RequestId id = dispatcher_->arrive(event.now, event.arrival, orders_);
    return id == event.id || differs(shown(event.id), shown(id));
  }
  bool operator()(const config::TurnedAway& event) {
    if (!call(event.now)) return false;
    const auto answer = dispatcher_->turn_away(event.now, event.arrival, orders_);
    const auto order = [](const std::optional<policies::Answer>& what) {
      return policies::Order{{}, {}, what.value_or(policies::Answer{})};
    };
    if (answer.has_value() == event.answer.has_value() && written(order(answer)) == written(order(event.answer)))
      return true;
    return differs(event.answer ? "turned away: " + shown(order(event.answer)) : "not turned away",
                   answer ? "turned away: " + shown(order(answer)) : "not turned away");
  }
  bool operator()(const config::FirstToken& event) {
    if (!call(event.now)) return false;
    dispatcher_->first_token(event.now, event.attempt, orders_);
    return true;
  }
  bool operator()(const config::Ended& event) {
    if (!call(event.now)) return false;
    dispatcher_->ended(event.now, event.attempt, event.outcome, orders_);
    return true;
  }
  bool operator()(const config::Progressed& event) {
    if (!call(event.now)) return false;
    dispatcher_->progress(event.now, event.progress, orders_);
    return true;
  }
  bool operator()(const config::CallerGone& event) {
    if (!call(event.now)) return false;
    dispatcher_->caller_gone(event.now, event.request, orders_);
    return true;
  }
  bool operator()(const config::Probed& event) {
    if (!call(event.now)) return false;
    dispatcher_->probed(event.now, event.endpoint, event.result, orders_);
    return true;
  }
  bool operator()(const config::SetByHand& event) {
    if (!call(event.now)) return false;
    dispatcher_->set_by_hand(event.now, event.endpoint, event.setting, orders_);
    return true;
  }
  bool operator()(config::Replanned& event) {
    if (!call(event.now)) return false;
    if (!sound(event.plan)) return wrong("a plan that names what it does not have");
    dispatcher_->replan(event.now, std::move(event.plan), orders_);
    ++out_.plans;
    return true;
  }
  bool operator()(const config::Ticked& event) {
    if (!call(event.now)) return false;
    dispatcher_->tick(event.now, orders_);
    return true;
  }
  bool operator()(const config::Ordered& event) {
    if (next_ == orders_.size()) return differs(shown(event.order), "no order");
    const policies::Order& mine = orders_[next_++];
    ++out_.orders;
    return written(mine) == written(event.order) || differs(shown(event.order), shown(mine));
  }
  bool operator()(const config::Gap& event) {
    return wrong(std::to_string(event.lost) + " records were lost here, as the writer was behind");
  }
  bool operator()(const config::Closed& event) {
    closed_ = true;
    if (event.continued) out_.note = "the log goes on in another file";
    return complete();
  }

  // How the reading of the log ended.
  void ended(EventReader::Read read) {
    if (read == EventReader::Read::wrong) {
      wrong("a record that means nothing");
    } else if (!dispatcher_) {
      wrong(read == EventReader::Read::cut ? "its first record is cut off" : "there is no record");
    } else if (!closed_) {
      out_.note = "the log has no end: its process still runs, or was killed; what it holds was played";
    }
  }

 private:
  // Of the call before.
  bool complete() { return next_ == orders_.size() || differs("no order", shown(orders_[next_])); }
  bool call(Time now) {
    if (!dispatcher_ || closed_) return wrong("a call before the beginning or behind the end");
    if (now < now_ || now == never) return wrong("time falls, or ends");
    if (!complete()) return false;
    now_ = now;
    ++out_.calls;
    orders_.clear();
    next_ = 0;
    return true;
  }
  bool differs(const std::string& logged, const std::string& mine) {
    out_.difference =
        "call " + std::to_string(out_.calls) + ": the log has \"" + logged + "\", this build \"" + mine + "\"";
    return false;
  }
  bool wrong(const std::string& what) {
    out_.problem = what;
    return false;
  }

  Replayed& out_;
  std::unique_ptr<policies::Dispatcher> dispatcher_;
  policies::Orders orders_;
  std::size_t next_ = 0;  // of the orders: how many the log has named
  Time now_{};
  bool closed_ = false;
};

}  // namespace

Replayed replay(std::string_view log) {
  Replayed out;
  const config::EventLogHead head = config::read_event_log_head(log);
  out.build = head.build;
  out.problem = head.problem;
  if (!out.problem.empty()) return out;
  EventReader reader(head.records);
  Replay replay(out);
  config::Event event;
  EventReader::Read read{};
  bool good = true;
  while (good && (read = reader.next(event)) == EventReader::Read::event) good = std::visit(replay, event);
  if (good) replay.ended(read);
  const std::string at = "byte " + std::to_string(log.size() - head.records.size() + reader.offset()) + ", ";
  if (!out.problem.empty()) out.problem.insert(0, at);
  if (!out.difference.empty()) out.difference.insert(0, at);
  return out;
}

int replay_file(const std::string& path, const LoadOptions& options) {
  const MappedFile file(path);
  if (!file.problem().empty()) {
    std::fprintf(stderr, "headgate simulate: %s\n", file.problem().c_str());
    return not_readable;
  }
  const auto began = std::chrono::steady_clock::now();
  const Replayed played = replay(file.text());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::error_code none;
  if (std::filesystem::equivalent(options.json, path, none)) {
    std::fprintf(stderr, "headgate simulate: --json: %s is the event log itself\n", path.c_str());
    return not_readable;
  }
  Output output;
  if (const std::string problem = output.open(options); !problem.empty()) {
    std::fprintf(stderr, "headgate simulate: %s\n", problem.c_str());
    return not_readable;
  }
  const bool equal = played.difference.empty() && played.problem.empty();
  Summary summary{{"replay", path},          {"build", played.build}, {"calls", played.calls},
                  {"orders", played.orders}, {"plans", played.plans}, {"equal", equal}};
  std::string table = std::to_string(played.calls) + " calls, " + std::to_string(played.orders) + " orders, " +
                      std::to_string(played.plans) + " configurations" +
                      (played.build.empty() ? "" : ", written by " + played.build) + "\n";
  const std::pair<const char*, const std::string&> remarks[] = {
      {"difference", played.difference}, {"problem", played.problem}, {"note", played.note}};
  for (const auto& [what, text] : remarks) {
    if (text.empty()) continue;
    summary[what] = text;
    table.append(what).append(": ").append(text).append("\n");
  }
  if (equal) table += "every order is equal\n";
  const bool good = output.show(options, summary, table);
  std::fprintf(stderr, "replayed %llu events in %.2f s\n",
               static_cast<unsigned long long>(played.calls + played.orders), took.count());
  if (!played.problem.empty()) return not_readable;
  return good && equal ? all_equal : not_equal;
}

}  // namespace headgate::loadtest
