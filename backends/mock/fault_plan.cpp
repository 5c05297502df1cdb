#include "backends/mock/fault_plan.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "backends/json_nesting.hpp"
#include "policies/base/nearest.hpp"
#include "policies/base/random.hpp"

namespace headgate::mock {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t lines_max = 10'000;
constexpr std::uint32_t slots_of_the_profile = UINT32_MAX;
constexpr std::uint64_t milliseconds_max = 86'400'000;  // a day

// Takes a time out of the line. Empty, or what is wrong with it.
std::string take_time(Json& line, const char* name, std::uint64_t least, std::optional<Nanos>& out) {
  const auto it = line.find(name);
  if (it == line.end()) return {};
  const bool good = it->is_number_unsigned() && it->get<std::uint64_t>() >= least && *it <= milliseconds_max;
  if (!good) {
    return std::string(name) + " must be a whole number of milliseconds from " + std::to_string(least) +
           " to 86400000, not " + it->dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60);
  }
  out = std::chrono::milliseconds(it->get<std::uint64_t>());
  line.erase(it);
  return {};
}

std::string read_line(std::string_view text, std::uint16_t replicas, PlannedControl& out) {
  if (backends::too_deep(text)) return "nested deeper than 32 levels";
  Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) return R"(a JSON object is wanted, such as {"at_ms":10000,"fault":"hang"})";
  for (const auto& [name, least, time] : {std::tuple("at_ms", 0u, &out.at), std::tuple("every_ms", 1u, &out.every),
                                          std::tuple("for_ms", 1u, &out.lasts)}) {
    if (std::string wrong = take_time(line, name, least, *time); !wrong.empty()) return wrong;
  }
  if (out.at.has_value() == out.every.has_value()) {
    for (const auto& [name, value] : line.items()) {
      const auto near = nearest(name, {{"at_ms", "every_ms", "for_ms", "replica"}});
      if (near && *near != name) return "unknown field \"" + name + "\"; did you mean \"" + *near + "\"?";
    }
    return "exactly one of at_ms and every_ms is needed";
  }
  if (const auto it = line.find("replica"); it != line.end()) {
    const bool good = it->is_number_unsigned() && it->get<std::uint64_t>() < replicas;
    if (!good)
      return "replica must be a whole number from 0 to " + std::to_string(replicas - 1) + ", not " + it->dump();
    out.replica = it->get<std::uint16_t>();
    line.erase(it);
  }
  out.text = line.dump(-1, ' ', false, Json::error_handler_t::replace);
  out.control = read_control(out.text);
  if (const auto* error = std::get_if<ControlError>(&out.control)) return error->message;
  const bool can_be_undone = std::holds_alternative<Fault>(out.control) || std::holds_alternative<Tuning>(out.control);
  if (out.lasts && !can_be_undone) return "for_ms is for faults, speed and slots";
  return {};
}

}  // namespace

std::vector<PlannedControl> read_fault_plan(std::string_view text, std::uint16_t replicas, std::string& problem) {
  std::vector<PlannedControl> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    PlannedControl planned;
    std::string wrong = read_line(line, replicas, planned);
    if (wrong.empty() && lines.size() == lines_max) wrong = "more than 10000 lines";
    if (!wrong.empty()) {
      problem = "line " + std::to_string(number) + ": " + wrong;
      return {};
    }
    lines.push_back(std::move(planned));
  }
  return lines;
}

FaultPlan::FaultPlan(std::vector<PlannedControl> lines, std::uint16_t replicas, std::uint64_t seed, Time start)
    : lines_(std::move(lines)), seed_(seed), sets_(replicas) {
  for (std::uint32_t line = 0; line < lines_.size(); ++line) {
    for (std::uint16_t replica = 0; replica < replicas; ++replica) {
      if (lines_[line].replica.value_or(replica) != replica) continue;
      Entry entry{.at = start, .line = line, .replica = replica};
      entry.at = after(start, lines_[line].at.value_or(gap(entry)));
      put(entry);
    }
  }
}

std::optional<FaultPlan::Due> FaultPlan::take() {
  std::pop_heap(due_.begin(), due_.end(), later);
  Entry entry = due_.back();
  due_.pop_back();
  if (entry.undo) return undo(entry);
  const PlannedControl& line = lines_[entry.line];
  Due due{entry.at, entry.replica, line.control, line.text};
  entry.serial = ++serial_;
  note(entry, line.lasts.has_value());
  if (line.lasts) {
    Entry end = entry;
    end.at = after(entry.at, *line.lasts);
    end.undo = true;
    put(end);
  }
  if (line.every) {
    ++entry.times;
    entry.at = after(entry.at, gap(entry));
    put(entry);
  }
  return due;
}

// What is set for good takes the place of all before it.
void FaultPlan::note(const Entry& entry, bool undone_later) {
  const PlannedControl& line = lines_[entry.line];
  Sets& sets = sets_[entry.replica];
  const auto set = [&](std::size_t place, Control control, std::string text) {
    if (!undone_later) sets[place].clear();
    sets[place].push_back({entry.serial, std::move(control), std::move(text)});
  };
  if (const auto* fault = std::get_if<Fault>(&line.control)) {
    set(static_cast<std::size_t>(fault->kind), *fault, line.text);
  } else if (const auto* tuning = std::get_if<Tuning>(&line.control)) {
    if (tuning->speed) set(speed_at, Tuning{.speed = tuning->speed}, {});
    if (tuning->slots) set(slots_at, Tuning{.slots = tuning->slots}, {});
  } else if (const auto* clear = std::get_if<ClearFaults>(&line.control)) {
    for (std::size_t kind = 0; kind < speed_at; ++kind) {
      if (!clear->kind || static_cast<std::size_t>(*clear->kind) == kind) sets[kind].clear();
    }
  }
}

std::optional<FaultPlan::Due> FaultPlan::undo(const Entry& entry) {
  std::optional<Due> due;
  Tuning back;
  Sets& sets = sets_[entry.replica];
  for (std::size_t place = 0; place < sets.size(); ++place) {
    std::vector<Set>& list = sets[place];
    if (list.empty() || list.back().serial != entry.serial) {  // it holds no more
      std::erase_if(list, [&](const Set& set) { return set.serial == entry.serial; });
      continue;
    }
    list.pop_back();
    if (place == speed_at) {
      back.speed = list.empty() ? 1 : std::get<Tuning>(list.back().control).speed;
    } else if (place == slots_at) {
      back.slots = list.empty() ? slots_of_the_profile : std::get<Tuning>(list.back().control).slots;
    } else if (!list.empty()) {
      due = Due{entry.at, entry.replica, list.back().control, list.back().text};
    } else {
      due = Due{entry.at, entry.replica, ClearFaults{static_cast<FaultKind>(place)},
                R"({"clear":")" + std::string(fault_names[place]) + "\"}"};
    }
  }
  if (back.speed || back.slots) {
    const char* const what = back.speed && back.slots ? "speed and slots" : back.speed ? "speed" : "slots";
    due = Due{entry.at, entry.replica, back, std::string(what) + " as before"};
  }
  return due;
}

// Of two at one time the line that stands first; what is undone comes before what is done.
bool FaultPlan::later(const Entry& a, const Entry& b) {
  return std::tuple(a.at, !a.undo, a.line, a.replica) > std::tuple(b.at, !b.undo, b.line, b.replica);
}

void FaultPlan::put(Entry entry) {
  due_.push_back(entry);
  std::push_heap(due_.begin(), due_.end(), later);
}

Nanos FaultPlan::gap(const Entry& entry) const {
  const PlannedControl& line = lines_[entry.line];
  if (!line.every) return Nanos(0);
  const double u = unit(draw(seed_, (std::uint64_t{entry.line} << 16) | entry.replica, entry.times));
  return std::max(Nanos(std::llround(-std::log1p(-u) * static_cast<double>(line.every->count()))), Nanos(1'000'000));
}

}  // namespace headgate::mock
