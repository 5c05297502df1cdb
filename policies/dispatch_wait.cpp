// Waiting: into the queues, out of them by a free unit, by time or by an answer.
#include <algorithm>

#include "policies/dispatcher_state.hpp"

namespace headgate::policies {
namespace {

std::int64_t ms(Nanos time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time).count(); }

}  // namespace

std::optional<Nanos> Dispatcher::State::wait_in(Time now, const Pool& pool, const Seeker& who) const {
  const std::uint32_t ahead = pool.queue.ahead_of(who.lane(), who.klass, who.tenant, tenants[who.tenant].weight());
  return pool.forecast.wait(now, {ahead, who.repeat, who.klass, pool.queue.fair().share(who.klass)}, pool.in_flight);
}

Nanos Dispatcher::State::wait_max(const Pool& pool, Class klass) const {
  return std::min(pool.limits.wait_max, classes[static_cast<std::size_t>(klass)].wait_max.value_or(Nanos::max()));
}

Answer Dispatcher::State::no_room(Time now, const Pool& pool, std::uint64_t body_bytes, const Seeker& who,
                                  std::uint64_t bits) const {
  const std::uint32_t counted = pool.queue.counted(who.lane());
  const std::uint64_t room = ceiling(who.klass, pool.limits.requests_max);
  const Nanos drained = wait_in(now, pool, who).value_or(1s);
  Answer answer{.code = Code::queue_full, .retry_after = jittered(drained, bits), .repeat_ok = !who.repeat};
  if (counted >= room) {
    answer.value = counted;
    answer.limit = static_cast<std::int64_t>(room);
  } else {
    answer.value = static_cast<std::int64_t>(pool.queue.bytes_counted(who.lane()) + body_bytes);
    answer.limit = static_cast<std::int64_t>(ceiling(who.klass, pool.limits.bytes_max));
  }
  return answer;
}

// Waits if some pool that its route allows now has room and is predicted to serve it in time; else says why not.
void Dispatcher::State::queue_fresh(Time now, std::uint32_t slot, Orders& orders) {
  Record& record = records[slot];
  record.lane = record.repeat ? Lane::repeats : Lane::fresh;
  bool admitted = false;
  std::optional<Verdict> late;  // the most promising of those too late
  const Pool* full = nullptr;
  for (const std::uint32_t p : record.pools()) {
    Pool& pool = pools[p];
    if (pool.hopeful == 0) continue;
    if (!record.repeat) pool.forecast.arrived(now);
    if (!pool.queue.admits(pool.limits, record.lane, record.klass, record.body_bytes)) {
      full = &pool;
    } else {
      const Forecast& forecast = pool.forecast;
      const auto wait = wait_in(now, pool, seeker(record));
      const Prospect content{wait, forecast.ttft_q90(), record.content_by - now};
      const Prospect whole{wait, record.stream ? Nanos{0} : forecast.e2e_q90(), record.head_by - now};
      const Verdict verdict = admit(content, whole, wait_max(pool, record.klass));
      admitted = admitted || verdict.admitted;
      if (!verdict.admitted && (!late || verdict.excess < late->excess)) late = verdict;
    }
    if (!spills(now, record, pool)) break;
  }
  if (admitted) {
    record.why = Why::queued;
    wait_in_queue(now, slot);
    return;
  }
  const std::uint64_t random = bits(record, Use::advice);
  if (late) {
    const Nanos come_back = jittered(late->excess, random);
    answer(slot, {Code::deadline_unmeetable, come_back, !record.repeat, ms(late->predicted), ms(late->limit)}, orders);
  } else {
    answer(slot, no_room(now, *full, record.body_bytes, seeker(record), random), orders);
  }
}

// Certain only where each pool that it may use has no unit free and no room to wait.
std::optional<Answer> Dispatcher::State::turn_away(Time now, const Arrival& arrival, Orders& orders) {
  advance(now, orders);
  if (index(arrival.route) >= routes.size()) return std::nullopt;
  const Route& route = routes[index(arrival.route)];
  const Nanos total = std::min(route.timeouts.total_unary, route.timeouts.total_stream);
  const Class klass = class_of(arrival);
  const BudgetOptions& budget = classes[static_cast<std::size_t>(klass)].budget;
  const Time content_by = route.content_by(arrival, budget);
  if (now >= std::min({content_by, route.total_by(arrival, budget), after(arrival.received, total)}))
    return std::nullopt;
  const PoolWish wish = route.wish(arrival, budget);  // which pools it may use depends on its size
  if (wish.usd_max < unlimited_usd || wish.quality_min > 0) return std::nullopt;
  const Seeker who{arrival.received, content_by, arrival.repeat, klass, known_tenant(arrival.tenant)};
  const Pool* full = nullptr;
  for (const std::uint32_t p : route.pools) {
    const Pool& pool = pools[p];
    if (pool.hopeful == 0) continue;
    if (pool.balancer.open().count() > 0 || pool.queue.admits(pool.limits, who.lane(), klass, arrival.body_bytes))
      return std::nullopt;
    full = &pool;
  }
  if (full == nullptr) return std::nullopt;
  return no_room(now, *full, arrival.body_bytes, who,
                 draw(seed, ++turned_away, static_cast<std::uint64_t>(Use::door_advice)));
}

// A request that was admitted once: ahead of new ones, with its old deadline.
void Dispatcher::State::queue_at_head(Time now, std::uint32_t slot) {
  Record& record = records[slot];
  record.lane = record.why == Why::evacuation ? Lane::evacuees : Lane::retries;
  wait_in_queue(now, slot);
}

void Dispatcher::State::wait_in_queue(Time now, std::uint32_t slot) {
  Record& record = records[slot];
  record.stage = Stage::waiting;
  record.queued_at = now;
  record.ticket = ++tickets_drawn;
  record.wait_by = now;
  record.by_newest = record.lane == Lane::fresh && newest_first(record);
  set_turn(slot);
  ++waiting;
  link_allowed(now, slot, is_new(record.lane));
}

bool Dispatcher::State::newest_first(const Record& record) const {
  const Pool& pool = pools[record.pools().front()];
  return pool.limits.order == QueueOrder::adaptive_lifo && pool.overload.late();
}

// Links it into every pool that its route allows now and it does not wait in yet, and sets its alarm: the end of its
// waiting, or the moment when its latency budget lets it spill.
void Dispatcher::State::link_allowed(Time now, std::uint32_t slot, bool within_bounds) {
  Record& record = records[slot];
  const Time start_by = is_new(record.lane) ? std::min(record.content_by, record.head_by) : record.head_by;
  Time spill = never;
  for (const std::uint32_t p : record.pools()) {
    Pool& pool = pools[p];
    const bool stays = p != record.pools().back() && !spills(now, record, pool);  // judged before it counts itself
    const auto end = record.links.begin() + record.links_n;
    if (std::find(record.links.begin(), end, p) == end && record.links_n < pools_max &&
        (!within_bounds || pool.queue.admits(pool.limits, record.lane, record.klass, record.body_bytes))) {
      tickets.link(pool.queue, slot, record.links_n, record.lane, record.body_bytes);
      record.links[record.links_n++] = p;
      record.wait_by =
          std::max(record.wait_by, std::min(start_by, after(record.queued_at, wait_max(pool, record.klass))));
    }
    if (stays) spill = spill_at(seeker(record), pool);
    if (stays) break;
  }
  request_alarms.set(slot, std::min(record.wait_by, spill));
}

void Dispatcher::State::stop_waiting(std::uint32_t slot) {
  Record& record = records[slot];
  for (std::uint32_t i = 0; i < record.links_n; ++i) {
    tickets.unlink(pools[record.links[i]].queue, slot, i, record.lane, record.body_bytes);
  }
  record.links_n = 0;
  request_alarms.clear(slot);
  --waiting;
}

// Gives the endpoint's free units to who waits; the pools it stands in are served in turn.
void Dispatcher::State::serve(Time now, std::uint32_t e, Orders& orders) {
  Endpoint& endpoint = endpoints[e];
  const auto n = static_cast<std::uint32_t>(endpoint.places.size());
  for (std::uint32_t idle = 0; idle < n;) {
    if (endpoint.turn >= n) endpoint.turn = 0;
    const std::uint32_t p = endpoint.places[endpoint.turn++].pool;
    idle = serve_one(now, p, orders) ? 0 : idle + 1;
  }
}

bool Dispatcher::State::serve_one(Time now, std::uint32_t p, Orders& orders) {
  Pool& pool = pools[p];
  if (pool.queue.queued() == 0 || pool.balancer.open().count() == 0) return false;
  for (const Lane lane : lanes) {
    std::uint32_t place = Tickets::first(pool.queue, lane);
    while (place != Tickets::none) {
      const std::uint32_t slot = Tickets::slot_of(place), behind = tickets.next(lane, place);
      const Record& record = records[slot];
      if (is_new(lane) && after(now, pool.forecast.ttft_q50()) > record.content_by) {
        answer_expired(now, slot, orders);  // the unit is for somebody who can still make it
        place = lane == Lane::fresh ? Tickets::first(pool.queue, lane) : behind;
        continue;
      }
      const std::uint32_t position = pool.balancer.choose(
          loads, record.not_these(),
          {seed, Records::serial(record.id), static_cast<std::uint64_t>(Use::choice) << 8 | record.attempts});
      if (position != routing::Balancer::none) {
        start(now, slot, p, position, orders);
        return true;
      }
      place = behind;  // it has tried all that is free
    }
  }
  return false;
}

// After an endpoint went out of use: other pools may be open to it now, what it has tried may be all there is, or
// nothing that could serve it comes back in time.
void Dispatcher::State::reconsider(Time now, std::uint32_t slot, Orders& orders) {
  Record& record = records[slot];
  if (hopeful(record)) {
    if (record.tried_n > 0 && !has_untried(record)) record.tried_n = 0;
    link_allowed(now, slot, is_new(record.lane));
    start_somewhere(now, slot, orders);
  } else if (returns_at(now, record, false) > record.wait_by) {
    answer_unhealthy(now, slot, orders);
  }
}

// A request's alarm: its wait is over, its budget lets it spill, or its pause before the same endpoint has passed.
void Dispatcher::State::ring(Time now, std::uint32_t slot, Orders& orders) {
  const Record& record = records[slot];
  if (record.stage == Stage::delayed) {
    try_again(now, slot, orders);
  } else if (now >= record.wait_by) {
    answer_expired(now, slot, orders);
  } else {
    link_allowed(now, slot, is_new(record.lane));
    start_somewhere(now, slot, orders);
  }
}

// Endpoints come back before requests give up or try again, and units are handed out last, to those still there.
void Dispatcher::State::advance(Time now, Orders& orders) {
  clock = now;
  if (endpoint_alarms.soonest() > now && request_alarms.soonest() > now) return;
  woken.clear();
  while (endpoint_alarms.soonest() <= now) {
    const std::uint32_t e = endpoint_alarms.soonest_key();
    endpoint_alarms.clear(e);
    endpoints[e].due = never;
    endpoints[e].health.wake(now);
    set_limit(e);
    refresh(e);
    set_alarm(e);
    woken.push_back(e);
  }
  while (request_alarms.soonest() <= now) ring(now, request_alarms.soonest_key(), orders);
  for (const std::uint32_t e : woken) serve(now, e, orders);
}

void Dispatcher::State::release(std::uint32_t slot) {
  const Record& record = records[slot];
  if (record.stage == Stage::waiting) stop_waiting(slot);
  if (record.stage == Stage::delayed) {
    request_alarms.clear(slot);
    --waiting;
  }
  settle(slot);
  records.give_back(slot);
}

void Dispatcher::State::answer(std::uint32_t slot, const Answer& answer, Orders& orders) {
  orders.push_back({records[slot].owner, records[slot].id, answer});
  release(slot);
}

// One that has been tried gets what became of that.
void Dispatcher::State::answer_unhealthy(Time now, std::uint32_t slot, Orders& orders) {
  const Record& record = records[slot];
  if (record.attempts > 0) return answer(slot, {.code = record.fallback}, orders);
  const Time back = returns_at(now, record, true);
  const Nanos left = back == never || back <= now ? Nanos{1s} : back - now;
  answer(slot, {.code = Code::no_healthy_backend, .retry_after = left, .repeat_ok = !record.repeat}, orders);
}

void Dispatcher::State::answer_expired(Time now, std::uint32_t slot, Orders& orders) {
  const Record& record = records[slot];
  if (record.attempts > 0 && now < record.head_by) return answer(slot, {.code = record.fallback}, orders);
  const Time own_by = record.attempts > 0 ? record.head_by : std::min(record.head_by, record.content_by);
  const bool queue_max = record.wait_by < own_by && now >= record.wait_by;
  const Time since = queue_max ? record.queued_at : record.received;
  const Time by = queue_max ? record.wait_by : own_by;
  answer(slot, {.code = Code::deadline_exceeded, .value = ms(now - since), .limit = ms(by - since)}, orders);
}

}  // namespace headgate::policies
