#include "loadtest/sim/simulator.hpp"

#include <algorithm>
#include <utility>

#include "backends/engine/engine.hpp"
#include "loadtest/sim/events.hpp"
#include "loadtest/sim/probing.hpp"
#include "loadtest/sim/prompt_blocks.hpp"
#include "loadtest/sim/server_use.hpp"
#include "loadtest/sim/underway.hpp"
#include "policies/base/random.hpp"
#include "policies/gap_book.hpp"

namespace headgate::loadtest {
namespace {

using What = SimEvent::What;

constexpr Time start = sim_start;
constexpr std::uint64_t body_bytes_per_token = 5;
constexpr Nanos report_every = std::chrono::milliseconds(100);  // as the gateway's workers do

std::uint32_t whole_ms(Nanos time) { return static_cast<std::uint32_t>(time / std::chrono::milliseconds(1)); }

class Simulator {
 public:
  Simulator(const SimSettings& settings, const std::vector<Planned>& plan)
      : settings_(settings),
        catalog_(settings.catalog),
        plan_(plan),
        dispatcher_(settings.catalog->plan),
        probing_(*settings.catalog, settings.profiles.size()),
        engines_(settings.profiles.begin(), settings.profiles.end()),
        by_place_(engines_.size()),
        promised_(engines_.size(), never),
        states_(engines_.size()),
        lost_(engines_.size()),
        live_(plan.size()) {
    result_.records.resize(plan.size());
    result_.tally = Tally(settings.classes);
  }

  RunResult run() {
    put(What::arrival, plan_, 0);
    put(What::fault, settings_.faults, 0);
    put(What::change, settings_.changes, 0);
    while (!events_.empty() && result_.tally.whole().ended < plan_.size()) {
      const SimEvent event = events_.take();
      now_ = event.at;
      happen(event);
      for (std::size_t n = 0; n < orders_.size(); ++n) obey(policies::Order(orders_[n]));
      if (settings_.watch) settings_.watch(now_, dispatcher_, orders_);
      orders_.clear();
      for (const std::uint32_t request : over_) live_.leave(request);
      over_.clear();
      if (const Time wake = dispatcher_.next_wake(); wake < promised_wake_) {
        promised_wake_ = wake;
        events_.put({std::max(wake, now_), What::tick});
      }
    }
    result_.simulated = true;
    for (std::uint32_t endpoint = 0; endpoint < engines_.size(); ++endpoint)
      lost_[endpoint] += engines_[endpoint].counts();
    result_.servers = server_use(*catalog_, settings_.profiles, lost_, result_.duration);
    return std::move(result_);
  }

 private:
  using Live = RequestUnderway;

  Record& record(std::uint32_t request) { return result_.records[request]; }

  template <class List>
  void put(What what, const List& list, std::uint32_t number) {
    if (number < list.size()) events_.put({after(start, list[number].at), what, number});
  }

  void happen(const SimEvent& event) {
    if (event.what == What::arrival) return arrive(event.who);
    if (event.what == What::engine) return run_engine(event.who);
    if (event.what == What::again) return send(event.who);
    if (event.what == What::patience) return lose_patience(event.who);
    if (event.what == What::fault) return apply_fault(event.who);
    if (event.what == What::change) return apply_change(event.who);
    if (event.what == What::progress) return dispatcher_.progress(now_, progress_.take(), orders_);
    if (event.what == What::probe) return event.serial == probing_.serial(event.who) ? probe(event.who) : void();
    if (event.what == What::tick) {
      promised_wake_ = never;
      return dispatcher_.tick(now_, orders_);
    }
    Live* const found = live_.find(event.who);
    if (found == nullptr || !found->attempting || found->serial != event.serial) return;
    Live& live = *found;
    switch (event.what) {
      case What::submit:
        return submit(event.who);
      case What::first_token:
        live.committed = true;
        return dispatcher_.first_token(now_, live.attempt, orders_);
      case What::ended:
        return end_attempt(event.who, live.outcome);
      default:
        return check_limits(event.who);
    }
  }

  void arrive(std::uint32_t request) {
    const Planned& planned = plan_[request];
    put(What::arrival, plan_, request + 1);
    Record& mine = record(request);
    mine.intended = mine.sent = planned.at;
    mine.stream = planned.stream;
    mine.traffic_class = planned.traffic_class;
    ++arrived_;
    events_.put({after(now_, settings_.callers.patience), What::patience, request});
    send(request);
  }

  void send(std::uint32_t request) {
    const Planned& planned = plan_[request];
    if (record(request).outcome != Outcome::pending) return;  // left meanwhile
    const TrafficClass& of = settings_.classes[planned.traffic_class];
    const auto route = catalog_->routes.find(of.model);
    if (route == catalog_->routes.end()) return conclude(request, Outcome::refused, "model_not_found");
    live_[request].sent = now_;
    record(request).resent_after_ms = whole_ms(now_ - start - record(request).intended);
    live_[request].started = false;
    live_[request].id = dispatcher_.arrive(now_,
                                           {.owner = {.shard = 0, .slot = request},
                                            .route = route->second.id,
                                            .body_bytes = planned.input * body_bytes_per_token,
                                            .tenant = of.tenant_id,
                                            .klass = of.klass,
                                            .prompt_tokens = planned.input,
                                            .stream = planned.stream,
                                            .repeat = record(request).sends > 1,
                                            .received = now_,
                                            .max_cost_usd = of.max_cost_usd,
                                            .min_quality = of.min_quality},
                                           orders_);
  }

  void lose_patience(std::uint32_t request) {
    Live* const found = live_.find(request);
    if (found == nullptr || found->committed) return;
    Live& live = *found;
    conclude(request, Outcome::left);
    dispatcher_.caller_gone(now_, live.id, orders_);
    if (live.attempting) end_attempt(request, {.end = policies::End::cancelled});
  }

  void obey(const policies::Order& order) {
    const std::uint32_t request = order.to.slot;
    if (const auto* answer = std::get_if<policies::Answer>(&order.what)) return refuse(request, *answer);
    const auto& go = std::get<policies::Start>(order.what);
    Live& live = live_[request];
    live.attempt = go.attempt;
    ++live.serial;
    live.endpoint = static_cast<std::uint32_t>(policies::index(go.endpoint));
    live.attempting = true;
    live.first_token_by = std::min(go.first_byte_by, go.first_token_by);
    live.end_by = go.end_by;
    live.idle = go.idle;
    live.key = engine::RequestKey::none;
    Record& mine = record(request);
    ++mine.attempts;
    if (!std::exchange(live.started, true)) mine.queued = now_ - live.sent;
    forget_content(mine);  // none of an earlier attempt's has been seen
    mine.backend = result_.names.number(catalog_->targets[policies::index(go.backend)]->name);
    events_.put({now_ + settings_.network, What::submit, request, live.serial});
    for (const Time by : {live.first_token_by, live.end_by}) events_.put({by, What::limit, request, live.serial});
  }

  static void forget_content(Record& mine) {
    mine.content_events = 0;
    mine.first.reset();
  }

  void submit(std::uint32_t request) {
    Live& live = live_[request];
    const Planned& planned = plan_[request];
    if (const auto no = states_[live.endpoint].at_once(request, live.serial)) return come_to_nothing(request, *no);
    engine::Engine& engine = engines_[live.endpoint];
    engine::Work work{planned.input, planned.output, prompt_blocks(planned, engine.profile().block_tokens)};
    if (!engine.fits(work)) return come_to_nothing(request, {.end = policies::End::ok, .status = 400});
    live.key = engine.submit(now_, std::move(work));
    if (live.key == engine::RequestKey::none) {
      const policies::Outcome full{.end = policies::End::status, .status = 503, .retry_after = std::chrono::seconds(1)};
      return come_to_nothing(request, full);
    }
    std::vector<std::uint32_t>& places = by_place_[live.endpoint];
    const std::uint32_t place = engine::place_of(live.key);
    if (place >= places.size()) places.resize(place + 1);
    places[place] = request;
    promise(live.endpoint);
  }

  // Its attempt ends like that as soon as the gateway hears of it.
  void come_to_nothing(std::uint32_t request, const policies::Outcome& outcome) {
    Live& live = live_[request];
    live.key = engine::RequestKey::none;
    live.outcome = outcome;
    events_.put({now_ + settings_.network, What::ended, request, live.serial});
  }

  void apply_fault(std::uint32_t number) {
    put(What::fault, settings_.faults, number + 1);
    const SimFault& fault = settings_.faults[number];
    const auto endpoint = static_cast<std::uint32_t>(policies::index(fault.endpoint));
    run_engine(endpoint);
    engine::Engine& engine = engines_[endpoint];
    const ServerState old = std::exchange(states_[endpoint], fault.state);
    if (fault.state.down && !old.down) {
      break_streams(endpoint);
      lost_[endpoint] += engine.counts();
      engine = engine::Engine(engine.profile());
    } else if (old.stalled && !fault.state.stalled) {
      engine.thaw(now_);
    }
    if (fault.state.stalled && !old.stalled) engine.freeze(now_);
    engine.slow_down(fault.state.slowness);
    promise(endpoint);
    look_again(endpoint);
  }

  void apply_change(std::uint32_t number) {
    put(What::change, settings_.changes, number + 1);
    const SimChange& change = settings_.changes[number];
    if (change.reload == nullptr) return dispatcher_.set_by_hand(now_, change.endpoint, change.by_hand, orders_);
    catalog_ = change.reload;
    dispatcher_.replan(now_, catalog_->plan, orders_);
    probing_.replan(*catalog_);
    // One that came with it and is down already is found out as any other is.
    for (std::uint32_t endpoint = 0; endpoint < engines_.size(); ++endpoint) look_again(endpoint);
  }

  void look_again(std::uint32_t endpoint) {
    const Time probe = probing_.changed(endpoint, now_);
    events_.put({probe, What::probe, endpoint, probing_.serial(endpoint)});
  }

  void break_streams(std::uint32_t endpoint) {
    for (std::uint32_t place = 0; place < by_place_[endpoint].size(); ++place) {
      const std::uint32_t request = by_place_[endpoint][place];
      const Live* const live = live_.find(request);
      const bool here = live != nullptr && live->attempting && live->endpoint == endpoint &&
                        live->key != engine::RequestKey::none && engine::place_of(live->key) == place;
      if (!here) continue;
      const bool begun = record(request).stream && record(request).content_events > 0;
      come_to_nothing(request, {.end = begun ? policies::End::truncated : policies::End::sent_no_answer});
    }
  }

  void probe(std::uint32_t endpoint) {
    const ServerState& server = states_[endpoint];
    const bool ok = !server.down && !server.stalled, all_ended = result_.tally.whole().ended == arrived_;
    dispatcher_.probed(now_, policies::EndpointId{endpoint}, {.ok = ok}, orders_);
    const Time quiet_until = all_ended && arrived_ < plan_.size() ? start + plan_[arrived_].at : now_;
    const Time next = probing_.answered(endpoint, now_, ok, quiet_until);
    events_.put({next, What::probe, endpoint, probing_.serial(endpoint)});
  }

  void promise(std::uint32_t endpoint) {
    const Time next = engines_[endpoint].next();
    if (next == promised_[endpoint] || next == never) return;
    promised_[endpoint] = next;
    events_.put({next, What::engine, endpoint});
  }

  void run_engine(std::uint32_t endpoint) {
    if (promised_[endpoint] == now_) promised_[endpoint] = never;
    made_.clear();
    engines_[endpoint].advance(now_, made_);
    for (const engine::EngineEvent& event : made_) {
      const std::uint32_t request = by_place_[endpoint][engine::place_of(event.key)];
      Live* const found = live_.find(request);
      if (found == nullptr || !found->attempting || found->key != event.key) continue;
      Live& live = *found;
      if (event.what == engine::EngineEvent::What::token) token(request, event.at);
      if (event.what != engine::EngineEvent::What::finished) continue;
      live.key = engine::RequestKey::none;  // what is on its way arrives
      live.outcome = {.end = policies::End::ok, .status = 200, .output_tokens = event.index};
      events_.put({event.at + settings_.network, What::ended, request, live.serial});
    }
    promise(endpoint);
  }

  void token(std::uint32_t request, Time made) {
    const Nanos at = made + settings_.network - start;
    Record& mine = record(request);
    if (mine.stream) {
      if (mine.first) {
        mine.gap_max = std::max(mine.gap_max, at - mine.last);
        result_.tally.itl(mine.traffic_class).record(at - mine.last);
        if (progress_.empty()) events_.put({now_ + report_every, What::progress});
        progress_.add(live_[request].endpoint, 1, at - mine.last);
      } else {
        mine.first = at;
      }
    }
    mine.last = at;
    if (mine.content_events++ > 0 || !mine.stream) return;
    events_.put({made + settings_.network, What::first_token, request, live_[request].serial});
    check_silence(request, start + at);
  }

  void check_silence(std::uint32_t request, Time heard) {
    Live& live = live_[request];
    live.silence_checked = after(heard, live.idle);
    events_.put({live.silence_checked, What::limit, request, live.serial});
  }

  void check_limits(std::uint32_t request) {
    const Live& live = live_[request];
    if (now_ >= live.end_by) return end_attempt(request, {.end = policies::End::out_of_time});
    const Record& mine = record(request);
    if (live.committed) {
      const Time heard = start + mine.last;
      if (now_ >= after(heard, live.idle)) return end_attempt(request, {.end = policies::End::stalled});
      if (now_ >= live.silence_checked) check_silence(request, heard);
    } else if (now_ >= live.first_token_by) {
      end_attempt(request, {.end = policies::End::first_token_late});
    }
  }

  void end_attempt(std::uint32_t request, const policies::Outcome& outcome) {
    Live& live = live_[request];
    live.attempting = false;
    live.outcome = outcome;
    engines_[live.endpoint].cancel(now_, std::exchange(live.key, engine::RequestKey::none));
    if (outcome.end == policies::End::ok && outcome.status != 200) {
      record(request).status = outcome.status;
      conclude(request, Outcome::failed_before_first_token, "longer than the server's memory");
    } else if (outcome.end == policies::End::ok) {
      record(request).status = 200;
      record(request).reported_output = outcome.output_tokens;
      conclude(request, Outcome::ok);
    }
    dispatcher_.ended(now_, live.attempt, outcome, orders_);
  }

  void refuse(std::uint32_t request, const policies::Answer& answer) {
    Record& mine = record(request);
    const policies::AnswerCode& code = policies::answer_code(answer.code);
    const policies::Outcome& last = live_[request].outcome;
    const bool begun = live_[request].committed;
    if (!begun && mine.sends <= settings_.callers.retries && would_retry(answer, last.status)) {
      const Nanos advice = answer.code == policies::Code::as_received ? last.retry_after : answer.retry_after;
      const double u = unit(draw(settings_.callers.seed, request, mine.sends));
      events_.put({now_ + pause_before_retry(mine.sends - 1, advice, u), What::again, request});
      ++mine.sends;
      return;
    }
    conclude(request,
             code.refuses ? Outcome::refused
             : begun      ? Outcome::cut
                          : Outcome::failed_before_first_token,
             code.name);
  }

  void conclude(std::uint32_t request, Outcome outcome, std::string_view reason = {}) {
    Record& mine = record(request);
    mine.reason = result_.names.number(std::string(reason));
    if (outcome != Outcome::ok && !live_[request].committed) forget_content(mine);  // it was still on its way
    mine.outcome = outcome;
    over_.push_back(request);
    mine.ended = now_ - start;
    result_.duration = mine.ended;
    result_.tally.ended(mine, result_.names, mine.ended);
  }

  const SimSettings& settings_;
  std::shared_ptr<const config::Catalog> catalog_;  // in use
  const std::vector<Planned>& plan_;
  policies::Dispatcher dispatcher_;
  Probing probing_;
  policies::GapBook progress_;
  std::size_t arrived_ = 0;
  std::vector<engine::Engine> engines_;               // by endpoint id, as the next four
  std::vector<std::vector<std::uint32_t>> by_place_;  // the request at each of its places
  std::vector<Time> promised_;                        // when it will be run
  std::vector<ServerState> states_;
  std::vector<engine::EngineCounts> lost_;  // of engines that were killed
  Underway live_;                           // by request
  std::vector<std::uint32_t> over_;         // requests that ended in this event
  SimEvents events_;
  policies::Orders orders_;
  std::vector<engine::EngineEvent> made_;
  Time now_ = start, promised_wake_ = never;
  RunResult result_;
};

}  // namespace

RunResult simulate(const SimSettings& settings, const std::vector<Planned>& plan) {
  return Simulator(settings, plan).run();
}

}  // namespace headgate::loadtest
