#include "backends/engine/engine.hpp"

#include <algorithm>
#include <utility>

namespace headgate::engine {

EngineCounts& EngineCounts::operator+=(const EngineCounts& other) {
  steps += other.steps;
  preemptions += other.preemptions;
  prompt_tokens += other.prompt_tokens;
  cached_tokens += other.cached_tokens;
  output_tokens += other.output_tokens;
  in_batches += other.in_batches;
  held_blocks += other.held_blocks;
  busy += other.busy;
  return *this;
}

Engine::Engine(const Profile& profile)
    : profile_(profile), pool_(profile.blocks), places_(profile.slots + profile.queue_max), slots_(profile.slots) {}

bool Engine::fits(const Work& work) const {
  const std::uint64_t tokens = std::uint64_t{work.prompt_tokens} + work.output_tokens;
  return tokens <= std::uint64_t{profile_.blocks} * profile_.block_tokens;
}

RequestKey Engine::submit(Time now, Work work) {
  if (!fits(work) || running_.size() + waiting() >= places_) return RequestKey::none;
  if (free_.first == nil && records_.size() < places_) {
    records_.emplace_back();
    append(static_cast<std::uint32_t>(records_.size() - 1), Phase::free);
  }
  const std::uint32_t place = free_.first;
  if (place == nil) return RequestKey::none;
  unlink(place);
  Record& record = records_[place];
  if (++record.serial == 0) record.serial = 1;
  record.work = std::move(work);
  record.work.prompt_tokens = std::max(record.work.prompt_tokens, 1u);
  record.arrived = after(now, profile_.overhead);
  record.cancelled = record.preempted = false;
  record.chunk = record.computed = record.produced = record.labelled = record.cached = 0;
  append(place, Phase::arriving);
  if (record.arrived <= now && frozen_at_ == never) arrive(now);
  return key_of(place);
}

void Engine::cancel(Time, RequestKey key) {
  const std::uint32_t place = place_of(key);
  if (key == RequestKey::none || place >= records_.size() || key_of(place) != key) return;
  Record& record = records_[place];
  if (record.phase == Phase::free) return;
  record.cancelled = true;
  if (record.phase != Phase::running) release(place);
}

void Engine::thaw(Time now) {
  const Nanos lost = now - std::exchange(frozen_at_, never);
  if (step_ends_ != never) {
    step_began_ += lost;
    step_ends_ += lost;
  }
  for (std::uint32_t place = arriving_.first; place != nil; place = records_[place].behind) {
    records_[place].arrived = std::max(records_[place].arrived, now);
  }
}

Time Engine::next() const {
  if (frozen_at_ != never) return never;
  const Time arrival = arriving_.first == nil ? never : records_[arriving_.first].arrived;
  return std::min(arrival, step_ends_);
}

void Engine::advance(Time now, std::vector<EngineEvent>& out) {
  for (Time at = next(); at <= now && at != never; at = next()) {
    if (step_ends_ == at) {
      end_step(at, out);
    } else {
      arrive(at);
    }
  }
}

RequestKey Engine::key_of(std::uint32_t place) const {
  return RequestKey{std::uint64_t{records_[place].serial} << 32 | place};
}

Engine::List& Engine::list_of(Phase phase) {
  switch (phase) {
    case Phase::arriving:
      return arriving_;
    case Phase::waiting:
      return waiting_;
    default:
      return free_;
  }
}

void Engine::append(std::uint32_t place, Phase phase) {
  List& list = list_of(phase);
  Record& record = records_[place];
  record.phase = phase;
  record.before = list.last;
  record.behind = nil;
  (list.last == nil ? list.first : records_[list.last].behind) = place;
  list.last = place;
  ++list.size;
}

void Engine::prepend(std::uint32_t place, Phase phase) {
  List& list = list_of(phase);
  Record& record = records_[place];
  record.phase = phase;
  record.before = nil;
  record.behind = list.first;
  (list.first == nil ? list.last : records_[list.first].before) = place;
  list.first = place;
  ++list.size;
}

void Engine::unlink(std::uint32_t place) {
  const Record& record = records_[place];
  List& list = list_of(record.phase);
  (record.before == nil ? list.first : records_[record.before].behind) = record.behind;
  (record.behind == nil ? list.last : records_[record.behind].before) = record.before;
  --list.size;
}

// The caller takes a running one out of running_.
void Engine::release(std::uint32_t place) {
  Record& record = records_[place];
  if (record.phase != Phase::running) unlink(place);
  give_blocks(record);
  record.work.blocks.clear();
  append(place, Phase::free);
}

// The end of a text is forgotten before its beginning.
void Engine::give_blocks(Record& record) {
  for (auto block = record.blocks.rbegin(); block != record.blocks.rend(); ++block) pool_.give(*block);
  record.blocks.clear();
  record.computed = record.labelled = 0;
}

std::uint32_t Engine::blocks_for(std::uint32_t tokens) const {
  return (tokens + profile_.block_tokens - 1) / profile_.block_tokens;
}

// Blocks for so many tokens; the newest give theirs if need be. False: it was the newest itself.
bool Engine::grow(std::uint32_t place, std::uint32_t tokens) {
  Record& record = records_[place];
  while (record.blocks.size() < blocks_for(tokens)) {
    while (pool_.available() == 0) {
      const bool itself = running_.back() == place;
      preempt_newest();
      if (itself) return false;
    }
    record.blocks.push_back(pool_.take());
  }
  return true;
}

void Engine::preempt_newest() {
  const std::uint32_t place = running_.back();
  running_.pop_back();
  Record& record = records_[place];
  if (record.cancelled) return release(place);
  give_blocks(record);
  ++counts_.preemptions;
  record.preempted = true;
  prepend(place, Phase::waiting);
}

// From the queue into a slot, with all blocks of its text. False: they are not there.
bool Engine::start(std::uint32_t place) {
  Record& record = records_[place];
  const std::uint32_t tokens = record.known(), wanted = blocks_for(tokens);
  const std::size_t sharable = std::min<std::size_t>((tokens - 1) / profile_.block_tokens, record.work.blocks.size());
  for (std::size_t n = 0; n < sharable; ++n) {
    const std::optional<BlockId> hit = pool_.share(record.work.blocks[n]);
    if (!hit) break;
    record.blocks.push_back(*hit);
  }
  if (wanted - record.blocks.size() > pool_.available()) {
    give_blocks(record);
    return false;
  }
  record.labelled = static_cast<std::uint32_t>(record.blocks.size());
  record.cached = record.computed = record.labelled * profile_.block_tokens;
  while (record.blocks.size() < wanted) record.blocks.push_back(pool_.take());
  if (!record.preempted) {
    counts_.prompt_tokens += record.work.prompt_tokens;
    counts_.cached_tokens += record.cached;
  }
  unlink(place);
  record.phase = Phase::running;
  running_.push_back(place);
  return true;
}

void Engine::arrive(Time at) {
  while (arriving_.first != nil && records_[arriving_.first].arrived <= at) {
    const std::uint32_t place = arriving_.first;
    unlink(place);
    append(place, Phase::waiting);
  }
  if (step_ends_ == never) start_step(at);
}

void Engine::start_step(Time at) {
  std::uint32_t left = profile_.batched_tokens_max, prefilled = 0;
  std::uint64_t context = 0;
  batch_ = 0;
  const auto take = [&](Record& record) {
    const bool decodes = record.decodes();
    record.chunk = std::min(record.known() - record.computed, left);
    left -= record.chunk;
    if (record.chunk == 0) return;
    ++batch_;
    if (decodes) {
      context += record.computed;
    } else {
      prefilled += record.chunk;
    }
  };
  const std::uint64_t preempted = counts_.preemptions;
  for (std::size_t n = 0; n < running_.size() && left > 0; ++n) {
    const std::uint32_t place = running_[n];
    if (grow(place, records_[place].known())) take(records_[place]);
  }
  if (preempted == counts_.preemptions) {
    while (left > 0 && running_.size() < slots_ && waiting_.first != nil) {
      const std::uint32_t place = waiting_.first;
      if (!start(place)) break;
      take(records_[place]);
    }
  }
  step_ends_ = never;
  if (batch_ == 0) return;
  step_began_ = at;
  step_ends_ = after(at, step_time(context, prefilled));
}

// Exact where 63 bits hold it; what would take longer than a century takes a century.
Nanos Engine::step_time(std::uint64_t context, std::uint32_t prefilled) const {
  constexpr double century_ns = 3.2e18;
  const auto ns = [](Nanos each, auto number) {
    return static_cast<double>(each.count()) * static_cast<double>(number);
  };
  const double about = (ns(profile_.step_fixed, 1) + ns(profile_.step_per_running, batch_) +
                        ns(profile_.step_per_context_token, context) + ns(profile_.prefill_per_token, prefilled)) *
                       std::max(slowness_, 1.0);
  if (about > century_ns) return Nanos(static_cast<std::int64_t>(century_ns));
  const Nanos time = profile_.step_fixed + profile_.step_per_running * batch_ +
                     profile_.step_per_context_token * static_cast<std::int64_t>(context) +
                     profile_.prefill_per_token * prefilled;
  return slowness_ == 1 ? time : Nanos(static_cast<std::int64_t>(static_cast<double>(time.count()) * slowness_));
}

void Engine::end_step(Time at, std::vector<EngineEvent>& out) {
  ++counts_.steps;
  counts_.busy += at - step_began_;
  counts_.in_batches += batch_;
  counts_.held_blocks += pool_.held();
  still_running_.clear();
  for (const std::uint32_t place : running_) end_of(place, at, out);
  running_.swap(still_running_);
  arrive(at);  // those due at this very instant join the step that begins
  if (step_ends_ == at) step_ends_ = never;
  if (step_ends_ == never) start_step(at);
}

void Engine::end_of(std::uint32_t place, Time at, std::vector<EngineEvent>& out) {
  Record& record = records_[place];
  const std::uint32_t chunk = std::exchange(record.chunk, 0);
  if (record.cancelled) return release(place);
  record.computed += chunk;
  label_full_blocks(record);
  if (chunk == 0 || record.computed < record.known()) return still_running_.push_back(place);
  const RequestKey key = key_of(place);
  if (record.produced == 0) out.push_back({EngineEvent::What::prefill_done, key, record.cached, at});
  if (record.produced < record.work.output_tokens) {
    ++counts_.output_tokens;
    out.push_back({EngineEvent::What::token, key, record.produced++, at});
  }
  if (record.produced < record.work.output_tokens) return still_running_.push_back(place);
  out.push_back({EngineEvent::What::finished, key, record.produced, at});
  release(place);
}

void Engine::label_full_blocks(Record& record) {
  const std::size_t full = std::min<std::size_t>(record.computed / profile_.block_tokens, record.work.blocks.size());
  for (; record.labelled < full; ++record.labelled)
    pool_.label(record.blocks[record.labelled], record.work.blocks[record.labelled]);
}

}  // namespace headgate::engine
