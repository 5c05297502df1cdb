#include "backends/engine/engine.hpp"

#include <algorithm>

namespace headgate::engine {

Engine::Engine(const Profile& profile) : profile_(profile), records_(std::size_t{profile.slots} + profile.queue_max) {
  for (std::uint32_t place = 0; place < places(); ++place) link(place, Phase::free);
}

RequestKey Engine::submit(Time now, const Work& work) {
  const std::uint32_t place = free_.first;
  if (place == nil || (running_ >= profile_.slots && waiting_.size >= profile_.queue_max)) return RequestKey::none;
  unlink(place);
  Record& record = records_[place];
  if (++record.serial == 0) record.serial = 1;
  record.work = work;
  record.arrived = now;
  record.produced = 0;
  record.in_step = false;
  link(place, Phase::waiting);
  admit(now);
  return key_of(place);
}

void Engine::cancel(Time now, RequestKey key) {
  const std::uint32_t place = place_of(key);
  if (key == RequestKey::none || place >= places() || key_of(place) != key) return;
  const Phase phase = records_[place].phase;
  if (phase == Phase::free) return;
  const bool in_lane = phase == Phase::prefill && prefill_.first == place;
  release(place);
  if (in_lane) {
    prefill_ends_ = never;
    start_prefill(now);
  }
  admit(now);
}

Time Engine::next() const { return std::min(prefill_ends_, step_ends_); }

void Engine::advance(Time now, std::vector<EngineEvent>& out) {
  for (Time at = next(); at <= now && at != never; at = next()) {
    if (prefill_ends_ == at) {
      end_prefill(at, out);
    } else {
      end_step(at, out);
    }
  }
}

RequestKey Engine::key_of(std::uint32_t place) const {
  return RequestKey{std::uint64_t{records_[place].serial} << 32 | place};
}

Engine::List& Engine::list_of(Phase phase) {
  switch (phase) {
    case Phase::waiting:
      return waiting_;
    case Phase::prefill:
      return prefill_;
    case Phase::decoding:
      return decoding_;
    case Phase::free:
      break;
  }
  return free_;
}

void Engine::link(std::uint32_t place, Phase phase) {
  List& list = list_of(phase);
  Record& record = records_[place];
  record.phase = phase;
  record.before = list.last;
  record.behind = nil;
  (list.last == nil ? list.first : records_[list.last].behind) = place;
  list.last = place;
  ++list.size;
}

void Engine::unlink(std::uint32_t place) {
  const Record& record = records_[place];
  List& list = list_of(record.phase);
  (record.before == nil ? list.first : records_[record.before].behind) = record.behind;
  (record.behind == nil ? list.last : records_[record.behind].before) = record.before;
  --list.size;
}

void Engine::release(std::uint32_t place) {
  if (records_[place].phase != Phase::waiting) --running_;
  unlink(place);
  link(place, Phase::free);
}

void Engine::admit(Time at) {
  while (running_ < profile_.slots && waiting_.first != nil) {
    const std::uint32_t place = waiting_.first;
    unlink(place);
    link(place, Phase::prefill);
    ++running_;
    if (prefill_ends_ == never) start_prefill(at);
  }
}

void Engine::start_prefill(Time at) {
  if (prefill_.first == nil) return;
  const Record& record = records_[prefill_.first];
  // A late host may hand on a slot or the lane at a time that lies before the request came.
  prefill_ends_ = after(std::max(at, record.arrived), prefill_time(profile_, record.work.prompt_tokens));
}

void Engine::end_prefill(Time at, std::vector<EngineEvent>& out) {
  const std::uint32_t place = prefill_.first;
  const RequestKey key = key_of(place);
  prefill_ends_ = never;
  out.push_back({EngineEvent::What::prefill_done, key, 0, at});
  if (records_[place].work.output_tokens == 0) {
    out.push_back({EngineEvent::What::finished, key, 0, at});
    release(place);
  } else {
    unlink(place);
    link(place, Phase::decoding);
  }
  start_prefill(at);
  admit(at);
  // Prompts that end at this very instant join the same step.
  if (step_ends_ == never && prefill_ends_ != at) start_step(at);
}

void Engine::start_step(Time at) {
  step_ends_ = never;
  if (decoding_.size == 0) return;
  for (std::uint32_t place = decoding_.first; place != nil; place = records_[place].behind) {
    records_[place].in_step = true;
  }
  step_ends_ = after(at, step_time(profile_, decoding_.size));
}

void Engine::end_step(Time at, std::vector<EngineEvent>& out) {
  for (std::uint32_t place = decoding_.first; place != nil;) {
    Record& record = records_[place];
    const std::uint32_t behind = record.behind;
    if (record.in_step) {
      const RequestKey key = key_of(place);
      out.push_back({EngineEvent::What::token, key, record.produced++, at});
      if (record.produced == record.work.output_tokens) {
        out.push_back({EngineEvent::What::finished, key, record.produced, at});
        release(place);
      }
    }
    place = behind;
  }
  admit(at);
  start_step(at);
}

}  // namespace headgate::engine
