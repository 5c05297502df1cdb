#include "loadtest/runner.hpp"

#include <algorithm>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <map>

#include "loadtest/client.hpp"

namespace headgate::loadtest {
namespace {

namespace asio = backends::asio;
using Clock = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, backends::Executor>;
constexpr Nanos housekeeping = std::chrono::milliseconds(20), redraw = std::chrono::milliseconds(500);

class Runner {
 public:
  Runner(const RunSettings& settings, const std::vector<Planned>& plan, std::vector<TimelineEvent> events)
      : settings_(settings),
        plan_(plan),
        client_(io_, {settings.target, settings.connections_max},
                [this](const Flight& flight, std::string_view transport) { ended(flight, transport); }),
        arrivals_(io_.get_executor()),
        upkeep_(io_.get_executor()),
        signals_(io_.get_executor()),
        live_(settings.show, settings.colour) {
    result_.records.resize(plan.size());
    result_.tally = Tally{settings.classes};
    result_.events = std::move(events);
    result_.happened.resize(result_.events.size());
    if (!settings.admin_authority.empty()) {
      admin_ = std::make_unique<AdminPoll>(io_, settings.admin, settings.admin_authority);
    }
  }

  RunResult run() {
    begin_ = Clock::now();
    signals_.add(SIGINT);
    signals_.add(SIGTERM);
    signals_.async_wait([this](const backends::ErrorCode& error, int) {
      if (!error) stop();
    });
    send_due();
    keep_up();
    io_.run();
    admin_.reset();
    live_.end(view(), result_.tally, state_);
    result_.connected = client_.connected();
    return std::move(result_);
  }

 private:
  Nanos since_begin() const { return Clock::now() - begin_; }
  Nanos span() const { return plan_.back().at; }
  bool finished() const {
    return result_.tally.whole().ended == plan_.size() || (result_.interrupted && client_.active() == 0);
  }

  void send_due() {
    Nanos now = since_begin();
    while (next_ < plan_.size() && plan_[next_].at <= now) {
      auto flight = std::make_unique<Flight>();
      flight->id = next_;
      flight->stream = plan_[next_].stream;
      const std::uint8_t traffic_class = plan_[next_].traffic_class;
      flight->answer.gaps_into(&result_.tally.itl(traffic_class));
      flight->bytes = request_bytes(settings_.asking, settings_.classes[traffic_class], next_, plan_[next_]);
      result_.records[next_].traffic_class = traffic_class;
      flight->deadline = begin_ + plan_[next_].at + settings_.timeout;
      result_.records[next_].intended = plan_[next_].at;
      result_.records[next_].stream = plan_[next_].stream;
      ++next_;
      client_.start(std::move(flight));
      now = since_begin();
    }
    if (next_ == plan_.size() || result_.interrupted) return;
    arrivals_.expires_at(begin_ + plan_[next_].at);
    arrivals_.async_wait([this](const backends::ErrorCode& error) {
      if (!error) send_due();
    });
  }

  void ended(const Flight& flight, std::string_view transport) {
    const Nanos now = since_begin();
    const Facts& facts = flight.answer.facts();
    Record& record = result_.records[flight.id];
    record.sent = flight.sent - begin_;
    record.ended = now;
    if (facts.first_content != never) {
      record.first = facts.first_content - begin_;
      record.last = facts.last_content - begin_;
    }
    record.gap_max = facts.gap_max;
    record.content_events = flight.stream ? facts.content_events : facts.words;
    record.reported_input = facts.tokens.input;
    record.reported_output = facts.tokens.output;
    record.attempts = facts.attempts;
    record.status = facts.status;
    record.backend = result_.names.number(facts.backend);
    const Verdict verdict = judge(facts, plan_[flight.id], transport, settings_.check_tokens);
    record.outcome = verdict.outcome;
    record.reason = result_.names.number(verdict.reason);
    result_.tally.late(record.sent - record.intended);
    result_.tally.ended(record, result_.names, now);
    result_.duration = now;
    if (finished()) shut_down();
  }

  // Each 20 ms: late requests, the timeline; each 500 ms: the live view.
  void keep_up() {
    const Nanos now = since_begin();
    client_.expire(begin_ + now);
    play_timeline(now);
    if (now >= next_redraw_) {
      next_redraw_ = now + redraw;
      if (admin_) {
        admin_->ask();
        state_ = admin_->state();
      }
      result_.tally.advance(now);
      live_.draw(view(), result_.tally, state_);
    }
    if (over_) return;
    upkeep_.expires_after(housekeeping);
    upkeep_.async_wait([this](const backends::ErrorCode& error) {
      if (!error) keep_up();
    });
  }

  std::vector<std::uint64_t> sending(const std::string& backend) const {
    std::vector<std::uint64_t> ids;
    client_.each_active([&](const Flight& flight) {
      const Facts& facts = flight.answer.facts();
      if (facts.backend == backend && facts.content_events > 0 && facts.finishes == 0) ids.push_back(flight.id);
    });
    return ids;
  }

  void play_timeline(Nanos now) {
    for (std::size_t k = 0; k < result_.events.size(); ++k) {
      const TimelineEvent& event = result_.events[k];
      Happened& happened = result_.happened[k];
      if (happened.state == Happened::State::running && reap(happened.pid, happened.exit_code)) {
        happened.state = Happened::State::done;
        happened.ended = since_begin();
        if (happened.exit_code != 0) note(event.label + ": exit code " + std::to_string(happened.exit_code));
      }
      const Nanos due = event.when.in(span());
      if (happened.state != Happened::State::waiting || now < due) continue;
      if (!event.kill.empty()) happened.sending = sending(event.kill);
      if (happened.sending.size() < event.streams_min) continue;
      happened.begun = since_begin();
      happened.pid = spawn_shell(event.command);
      happened.state = happened.pid < 0 ? Happened::State::done : Happened::State::running;
      note(event.label);
    }
  }

  void note(const std::string& what) {
    char when[32];
    std::snprintf(when, sizeof when, "%5.1f s  ", std::chrono::duration<double>(since_begin()).count());
    noted_.push_back(when + what);
    live_.note(noted_.back());
  }

  LiveView view() const {
    LiveView view;
    view.title = settings_.title;
    view.now = since_begin();
    view.span = span();
    view.planned = plan_.size();
    view.sent = next_;
    view.active = client_.active();
    view.happened = noted_;
    return view;
  }

  void stop() {
    result_.interrupted = true;
    arrivals_.cancel();
    client_.close("stopped");
    shut_down();
  }

  void shut_down() {
    over_ = true;
    arrivals_.cancel();
    upkeep_.cancel();
    signals_.cancel();
    client_.close("stopped");
    for (Happened& happened : result_.happened) {  // a command of the last moments may take the io_context's place
      if (happened.state == Happened::State::running && reap(happened.pid, happened.exit_code)) {
        happened.state = Happened::State::done;
        happened.ended = since_begin();
      }
    }
    io_.stop();
  }

  const RunSettings& settings_;
  const std::vector<Planned>& plan_;
  asio::io_context io_{1};
  RunResult result_;
  Client client_;
  Timer arrivals_, upkeep_;
  asio::basic_signal_set<backends::Executor> signals_;
  Live live_;
  std::unique_ptr<AdminPoll> admin_;
  AdminState state_;
  std::vector<std::string> noted_;
  Time begin_{};
  Nanos next_redraw_{};
  std::size_t next_ = 0;
  bool over_ = false;
};

}  // namespace

RunResult run_plan(const RunSettings& settings, const std::vector<Planned>& plan, std::vector<TimelineEvent> events) {
  Runner runner(settings, plan, std::move(events));
  return runner.run();
}

}  // namespace headgate::loadtest
