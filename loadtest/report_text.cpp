// What people read of a summary: the table, the conditions, the verdict.
#include <charconv>
#include <cstdio>

#include "loadtest/report.hpp"

namespace headgate::loadtest {
namespace {

template <class... T>
std::string text(const char* format, T... values) {
  std::string line(static_cast<std::size_t>(std::snprintf(nullptr, 0, format, values...)), '\0');
  std::snprintf(line.data(), line.size() + 1, format, values...);
  return line;
}

unsigned long long number(const Summary& object, const char* name) { return object.value(name, std::uint64_t{0}); }

std::string counts(const Summary& object) {
  std::string all;
  for (const auto& [name, n] : object.items()) all += (all.empty() ? "" : ", ") + name + " " + n.dump();
  return all.empty() ? "" : "  (" + all + ")";
}

std::string latency_row(const char* title, const Summary& latency) {
  return text("%-12s %10.1f %10.1f %10.1f %10.1f   of %llu\n", title, latency.value("p50", 0.0),
              latency.value("p90", 0.0), latency.value("p99", 0.0), latency.value("max", 0.0),
              number(latency, "count"));
}

std::string classes_of(const Summary& classes) {
  std::string table = text("\n%-12s %-12s %9s %9s %9s %9s %9s %9s %9s %9s\n", "class", "route", "requests", "refused",
                           "goodput", "TTFT p50", "p99 ms", "ITL p99", "E2E p99", "attempts");
  for (const auto& [name, row] : classes.items()) {
    table += text("%-12s %-12s %9llu %9llu %7.1f %% %9.1f %9.1f %9.1f %9.0f %9.2f\n", name.c_str(),
                  row.value("route", "").c_str(), number(row, "requests"), number(row, "refused"),
                  100 * row["goodput"].value("share", 0.0), row["ttft_ms"].value("p50", 0.0),
                  row["ttft_ms"].value("p99", 0.0), row["itl_ms"].value("p99", 0.0), row["e2e_ms"].value("p99", 0.0),
                  row.value("attempts_per_request", 0.0));
    if (!row["refused_by"].empty()) table += "             refused" + counts(row["refused_by"]) + "\n";
  }
  return table;
}

struct Condition {
  std::string_view path, comparison, wanted;
};

bool split_condition(std::string_view condition, Condition& out) {
  const std::size_t begin = condition.find_first_of("<>=!");
  if (begin == condition.npos || begin == 0) return false;
  const std::size_t end = condition.find_first_not_of("<>=!", begin);
  if (end == condition.npos) return false;
  out = {condition.substr(0, begin), condition.substr(begin, end - begin), condition.substr(end)};
  for (const std::string_view known : {"=", "==", "!=", "<", "<=", ">", ">="}) {
    if (out.comparison == known) return true;
  }
  return false;
}

const Summary* follow(const Summary& summary, std::string_view path) {
  const Summary* at = &summary;
  while (!path.empty()) {
    const std::string step{path.substr(0, path.find('.'))};
    path.remove_prefix(std::min(step.size() + 1, path.size()));
    std::size_t index = 0;
    if (at->is_object() && at->contains(step)) {
      at = &at->at(step);
    } else if (at->is_array() && std::from_chars(step.data(), step.data() + step.size(), index).ec == std::errc{} &&
               index < at->size()) {
      at = &at->at(index);
    } else {
      return nullptr;
    }
  }
  return at;
}

bool holds(std::string_view comparison, double have, double want) {
  if (comparison == "<") return have < want;
  if (comparison == "<=") return have <= want;
  if (comparison == ">") return have > want;
  if (comparison == ">=") return have >= want;
  return (have == want) == (comparison != "!=");
}

std::string explain_kill(const Summary& kill, bool& pass) {
  const std::string backend = kill.value("backend", "");
  const auto cut = number(kill, "cut"), wanted = number(kill, "cut_wanted");
  const bool exact = kill.value("exact", false);
  std::string lines =
      text("  %s killed at %.1f s while sending %llu streams: %llu cut, each ended in one error event\n",
           backend.c_str(), kill.value("at_s", 0.0), number(kill, "sending"), cut);
  const auto finished = number(kill, "finished_on_the_way"), begun = number(kill, "begun_on_the_way");
  if (finished + begun > 0) {
    lines += text("    within %.0f ms of the kill %llu more had their first content and %llu finished\n",
                  kill.value("slack_ms", 0.0), begun, finished);
  }
  if (number(kill, "cut_dirty") > 0) {
    lines += text("    %llu more did not end in exactly one error event  <- must be 0\n", number(kill, "cut_dirty"));
  }
  if (number(kill, "unexplained") > 0) {
    lines += text("    %llu streams cut that it was not sending, or sent by it and not cut  <- must be 0\n",
                  number(kill, "unexplained"));
  }
  if (cut < wanted) lines += text("    at least %llu cut streams are wanted\n", wanted);
  const double cost = kill.value("cost_ms", 0.0);
  lines += text("    what the kill cost: TTFT p99 %.0f ms in the 10 s after, %.0f ms in the 10 s before: %s\n",
                kill.value("ttft_p99_after_ms", 0.0), kill.value("ttft_p99_before_ms", 0.0),
                cost > 0 ? text("%+.0f ms", cost).c_str() : "nothing that shows");
  pass = pass && exact && cut >= wanted;
  return lines;
}

}  // namespace

std::string faults_of(const Summary& summary) {
  std::string lines;
  for (const Summary& fault : summary["faults"]) lines += "fault        " + fault.get<std::string>() + "\n";
  return lines;
}

std::string table_of(const Summary& summary) {
  std::string table =
      text("requests     %llu in %.1f s\n", number(summary, "requests"), summary.value("duration_s", 0.0));
  table += text("  ok                         %llu\n", number(summary, "ok"));
  table +=
      text("  refused                    %llu%s\n", number(summary, "refused"), counts(summary["refused_by"]).c_str());
  table += text("  failed before first token  %llu%s\n", number(summary, "failed_before_first_token"),
                counts(summary["failed_by"]).c_str());
  table += text("  cut by one error event     %llu\n", number(summary, "cut"));
  table += text("  cut otherwise              %llu\n", number(summary, "cut_dirty"));
  table += text("  wrong token count          %llu\n", number(summary, "wrong_count"));
  if (number(summary, "left") > 0) {
    table += text("  caller left before content %llu\n", number(summary, "left"));
  }
  if (number(summary, "retries") > 0) {
    table += text("  sent again by callers      %llu\n", number(summary, "retries"));
  }
  for (const char* kind : {"wrong_count_examples", "cut_dirty_examples"}) {
    if (!summary.contains(kind)) continue;
    for (const Summary& example : summary[kind]) {
      table += text("    request %llu of %s: %s\n", number(example, "request"), example.value("backend", "").c_str(),
                    example.value("reason", "").c_str());
    }
  }
  const Summary& goodput = summary["goodput"];
  table += text("goodput      %.1f /s, %.1f %% of all, within %s\n\n", goodput.value("per_s", 0.0),
                100 * goodput.value("share", 0.0), goodput.value("slo", "").c_str());
  table += text("%-12s %10s %10s %10s %10s\n", "ms", "p50", "p90", "p99", "max");
  table += latency_row("TTFT", summary["ttft_ms"]) + latency_row("TPOT", summary["tpot_ms"]);
  table += latency_row("ITL", summary["itl_ms"]);
  table += latency_row("largest gap", summary["gap_ms"]) + latency_row("E2E", summary["e2e_ms"]);
  if (summary.contains("queue_ms")) table += latency_row("queue wait", summary["queue_ms"]);
  if (summary.contains("classes")) table += classes_of(summary["classes"]);
  if (!summary["backends"].empty()) table += "\n";
  for (const auto& [name, row] : summary["backends"].items()) {
    table += text("%-12s", name.c_str());
    for (const auto& [what, n] : row.items()) table += " " + what + " " + n.dump();
    table += "\n";
  }
  if (summary.contains("servers")) {
    table += text("\n%-12s %8s %8s %8s %14s %8s %14s %10s\n", "server", "busy", "batch", "KV held", "prompt tokens",
                  "cached", "output tokens", "preempted");
    for (const auto& [name, row] : summary["servers"].items()) {
      table += text("%-12s %6.1f %% %8.1f %6.1f %% %14llu %6.1f %% %14llu %10llu\n", name.c_str(),
                    100 * row.value("busy", 0.0), row.value("batch", 0.0), 100 * row.value("kv_held", 0.0),
                    number(row, "prompt_tokens"), 100 * row.value("cached", 0.0), number(row, "output_tokens"),
                    number(row, "preemptions"));
    }
  }
  if (summary.contains("cost_usd")) table += text("\ncost         %.4f USD\n", summary.value("cost_usd", 0.0));
  if (summary.contains("faults")) table += "\n" + faults_of(summary);
  if (!summary.contains("lag_ms")) return table;
  const double lag = summary["lag_ms"].value("p99", 0.0);
  table += text("\ngenerator lag p99 %.1f ms, connections made %llu\n", lag, number(summary, "connections"));
  if (lag > 10) {
    table += "WARNING: the generator itself sent late (over 10 ms at p99): latencies include its own delay\n";
  }
  if (summary.value("interrupted", false)) table += "interrupted: not all requests were played\n";
  return table;
}

bool is_condition(std::string_view condition) {
  Condition parts;
  return split_condition(condition, parts);
}

std::string check_condition(const Summary& summary, std::string_view condition) {
  Condition parts;
  if (!split_condition(condition, parts)) return std::string{condition} + ": not a condition such as cut>=5";
  const Summary* have = follow(summary, parts.path);
  if (have == nullptr) return std::string{condition} + ": the summary has no " + std::string{parts.path};
  bool held = false;
  double wanted = 0;
  const auto [end, error] = std::from_chars(parts.wanted.data(), parts.wanted.data() + parts.wanted.size(), wanted);
  const bool numeric = error == std::errc{} && end == parts.wanted.data() + parts.wanted.size();
  if (have->is_number() && numeric) {
    held = holds(parts.comparison, have->get<double>(), wanted);
  } else if (parts.comparison == "=" || parts.comparison == "==" || parts.comparison == "!=") {
    const std::string word = have->is_string() ? have->get<std::string>() : have->dump();
    held = (word == parts.wanted) == (parts.comparison != "!=");
  }
  return held ? "" : std::string{condition} + ": it is " + have->dump();
}

RunVerdict verdict_of(const Summary& summary) {
  const auto failed = number(summary, "failed_before_first_token"), wrong = number(summary, "wrong_count");
  const auto elsewhere = number(summary, "cut_elsewhere");
  bool pass = number(summary, "requests") > 0 && number(summary, "connections") > 0 && failed == 0 && wrong == 0 &&
              elsewhere == 0 && !summary.value("interrupted", false);
  std::string lines = text("\nVerdict\n  %llu requests, %llu ok, %llu refused\n", number(summary, "requests"),
                           number(summary, "ok"), number(summary, "refused"));
  lines += text("  %llu failed before their first token%s\n", failed, failed ? "  <- must be 0" : "");
  if (wrong > 0) lines += text("  %llu with a wrong token count  <- must be 0\n", wrong);
  for (const Summary& event : summary["events"]) {
    const bool worked = event.value("happened", false) && event.value("exit_code", 0) == 0;
    if (!worked) lines += "  did not happen, or its command failed: " + event.value("label", "") + "\n";
    pass = pass && worked;
  }
  for (const Summary& kill : summary["kills"]) lines += explain_kill(kill, pass);
  lines += text("  %llu streams cut elsewhere%s\n", elsewhere, elsewhere ? "  <- must be 0" : "");
  lines += pass ? "PASS\n" : "FAIL\n";
  return {pass, lines};
}

}  // namespace headgate::loadtest
