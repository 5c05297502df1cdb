#include "backends/mock/fault_plan.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "policies/base/random.hpp"

namespace headgate::mock {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t lines_max = 10'000;
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
  Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) return R"(a JSON object is wanted, such as {"at_ms":10000,"fault":"hang"})";
  for (const auto& [name, least, time] : {std::tuple("at_ms", 0u, &out.at), std::tuple("every_ms", 1u, &out.every),
                                          std::tuple("for_ms", 1u, &out.lasts)}) {
    if (std::string wrong = take_time(line, name, least, *time); !wrong.empty()) return wrong;
  }
  if (out.at.has_value() == out.every.has_value()) return "exactly one of at_ms and every_ms is needed";
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

std::pair<Control, std::string> undone(const Control& control) {
  if (const auto* fault = std::get_if<Fault>(&control)) {
    return {ClearFaults{fault->kind}, R"({"clear":")" + std::string(name_of(fault->kind)) + "\"}"};
  }
  const auto& tuning = std::get<Tuning>(control);
  Tuning back;
  if (tuning.speed) back.speed = 1;
  if (tuning.slots) back.slots = UINT32_MAX;  // the profile's
  return {back, tuning.speed && tuning.slots ? "speed and slots as before"
                : tuning.speed               ? "speed as before"
                                             : "slots as before"};
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
    : lines_(std::move(lines)), seed_(seed) {
  for (std::uint32_t line = 0; line < lines_.size(); ++line) {
    for (std::uint16_t replica = 0; replica < replicas; ++replica) {
      if (lines_[line].replica.value_or(replica) != replica) continue;
      Entry entry{.at = start, .line = line, .replica = replica};
      entry.at = after(start, lines_[line].at.value_or(gap(entry)));
      put(entry);
    }
  }
}

FaultPlan::Due FaultPlan::take() {
  std::pop_heap(due_.begin(), due_.end(), later);
  Entry entry = due_.back();
  due_.pop_back();
  const PlannedControl& line = lines_[entry.line];
  Due due{entry.at, entry.replica, line.control, line.text};
  if (entry.undo) {
    std::tie(due.control, due.text) = undone(line.control);
    return due;
  }
  if (line.lasts) put({.at = after(entry.at, *line.lasts), .line = entry.line, .replica = entry.replica, .undo = true});
  if (line.every) {
    ++entry.times;
    entry.at = after(entry.at, gap(entry));
    put(entry);
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
