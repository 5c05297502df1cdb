#include "loadtest/live.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace headgate::loadtest {
namespace {

template <class... T>
std::string text(const char* format, T... values) {
  char line[256];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

double seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }

std::string ms(double us) { return us < 99.95e3 ? text("%.1f ms", us / 1e3) : text("%.0f ms", us / 1e3); }

unsigned long long count(const Tally& tally, Outcome outcome) {
  return tally.outcomes[static_cast<std::size_t>(outcome)];
}

std::string bar(double share, int width) {
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * width + 0.5);
  return std::string(static_cast<std::size_t>(full), '#') + std::string(static_cast<std::size_t>(width - full), '.');
}

double share_done(const LiveView& view, const Tally& tally) {
  return view.planned == 0 ? 0 : static_cast<double>(tally.whole().ended) / static_cast<double>(view.planned);
}

std::string reasons(const std::map<std::string, std::uint64_t>& by) {
  std::string all;
  for (const auto& [reason, n] : by) all += (all.empty() ? "" : ", ") + reason + " " + std::to_string(n);
  return all.empty() ? "none" : all;
}

std::string latency_row(const char* name, const Histogram& recent, const Histogram& whole) {
  return text("  %-6s p50 %9s   p99 %9s      p50 %9s   p99 %9s\n", name, ms(recent.quantile_us(0.5)).c_str(),
              ms(recent.quantile_us(0.99)).c_str(), ms(whole.quantile_us(0.5)).c_str(),
              ms(whole.quantile_us(0.99)).c_str());
}

struct Paint {
  bool on;
  std::string operator()(const char* code, const std::string& words) const {
    return on ? "\x1b[" + std::string{code} + "m" + words + "\x1b[0m" : words;
  }
};

std::string backend_rows(const AdminState& state, const Paint& paint) {
  std::string rows;
  for (const AdminState::Pool& pool : state.pools) {
    rows += text("  pool %-10s queued %llu\n", pool.name.c_str(), static_cast<unsigned long long>(pool.queued));
    for (const AdminState::Backend& backend : state.backends) {
      if (backend.pool != pool.name) continue;
      const double busy = backend.in_flight_max == 0
                              ? 0
                              : static_cast<double>(backend.in_flight) / static_cast<double>(backend.in_flight_max);
      const bool well = backend.health == "up" || backend.health == "healthy" || backend.health == "ok";
      rows += text("    %-12s ", backend.name.c_str()) +
              paint(well ? "32" : "31", text("%-10s", backend.health.c_str())) +
              text(" [%s] %llu of %llu in flight\n", bar(busy, 20).c_str(),
                   static_cast<unsigned long long>(backend.in_flight),
                   static_cast<unsigned long long>(backend.in_flight_max));
    }
  }
  return rows;
}

}  // namespace

std::string live_screen(const LiveView& view, const Tally& tally, const AdminState& state, bool colour) {
  const Paint paint{colour};
  const Tally::Window recent = tally.recent();
  const Tally::Window& whole = tally.whole();
  const double share = whole.ended == 0 ? 1.0 : static_cast<double>(whole.good) / static_cast<double>(whole.ended);
  std::string screen = paint("1", view.title.empty() ? std::string{"headgate load"} : view.title) + "\n";
  screen += text("  %5.1f s of %.0f s  [%s]\n\n", seconds(view.now), seconds(view.span),
                 bar(share_done(view, tally), 40).c_str());
  screen += text("  requests  sent %llu of %llu   in flight %llu   ended %llu   ok %llu\n",
                 static_cast<unsigned long long>(view.sent), static_cast<unsigned long long>(view.planned),
                 static_cast<unsigned long long>(view.active), static_cast<unsigned long long>(whole.ended),
                 count(tally, Outcome::ok));
  const unsigned long long failed = count(tally, Outcome::failed_before_first_token);
  const unsigned long long cut = count(tally, Outcome::cut) + count(tally, Outcome::cut_dirty);
  screen += "            " + paint(failed ? "31" : "0", text("failed before first token %llu", failed)) + "   " +
            paint(cut ? "33" : "0", text("cut %llu", cut)) +
            text("   wrong count %llu\n", count(tally, Outcome::wrong_count));
  screen += text("  goodput   %.1f /s   %.1f %% within %s\n",
                 static_cast<double>(recent.good) / tally.recent_span_s(view.now), 100 * share,
                 tally.slo().text.empty() ? "no limits" : tally.slo().text.c_str());
  screen += "  refusals  " + reasons(tally.refused_by) + "\n\n";
  screen += "         last 10 s                             whole run\n";
  screen += latency_row("TTFT", recent.ttft, whole.ttft);
  screen += latency_row("TPOT", recent.tpot, whole.tpot) + "\n";
  screen += backend_rows(state, paint);
  for (const std::string& line : view.happened) screen += "  " + paint("1;33", line) + "\n";
  return screen;
}

std::string live_line(const LiveView& view, const Tally& tally) {
  const Tally::Window recent = tally.recent();
  return text(
      "%5.1f s  sent %llu  in flight %llu  ok %llu  failed %llu  cut %llu  refused %llu  goodput %.1f/s  TTFT p50 %s "
      "p99 "
      "%s  TPOT p50 %s p99 %s\n",
      seconds(view.now), static_cast<unsigned long long>(view.sent), static_cast<unsigned long long>(view.active),
      count(tally, Outcome::ok), count(tally, Outcome::failed_before_first_token),
      count(tally, Outcome::cut) + count(tally, Outcome::cut_dirty), count(tally, Outcome::refused),
      static_cast<double>(recent.good) / tally.recent_span_s(view.now), ms(recent.ttft.quantile_us(0.5)).c_str(),
      ms(recent.ttft.quantile_us(0.99)).c_str(), ms(recent.tpot.quantile_us(0.5)).c_str(),
      ms(recent.tpot.quantile_us(0.99)).c_str());
}

std::string progress_bar(const LiveView& view, const Tally& tally) {
  return text("[%s] %llu of %llu, %llu in flight, %.0f s", bar(share_done(view, tally), 40).c_str(),
              static_cast<unsigned long long>(tally.whole().ended), static_cast<unsigned long long>(view.planned),
              static_cast<unsigned long long>(view.active), seconds(view.now));
}

void Live::draw(const LiveView& view, const Tally& tally, const AdminState& state) {
  if (show_ == Show::bar) {
    std::fprintf(stderr, "\r%s\x1b[K", progress_bar(view, tally).c_str());
  } else if (show_ == Show::screen) {
    std::string screen = std::exchange(cleared_, true) ? "\x1b[H" : "\x1b[2J\x1b[H";
    for (const char c : live_screen(view, tally, state, colour_)) {
      if (c == '\n') screen += "\x1b[K";  // what the previous screen left to the right
      screen += c;
    }
    screen += "\x1b[J";
    std::fwrite(screen.data(), 1, screen.size(), stdout);
  } else if (show_ == Show::lines && view.now >= next_line_) {
    next_line_ = view.now + std::chrono::seconds(5) - std::chrono::milliseconds(100);
    std::fputs(live_line(view, tally).c_str(), stdout);
  }
  std::fflush(stdout);
}

void Live::note(const std::string& happened) {
  if (show_ == Show::lines) std::printf("%s\n", happened.c_str());
  if (show_ == Show::bar) std::fprintf(stderr, "\r%s\x1b[K\n", happened.c_str());
  std::fflush(stdout);
}

void Live::end(const LiveView& view, const Tally& tally, const AdminState& state) {
  next_line_ = {};
  draw(view, tally, state);
  if (show_ == Show::bar) std::fputs("\n", stderr);
  if (show_ == Show::screen) std::fputs("\n", stdout);
  std::fflush(stdout);
}

Show choose_show(bool live) {
  if (live) return isatty(STDOUT_FILENO) != 0 ? Show::screen : Show::lines;
  return isatty(STDERR_FILENO) != 0 ? Show::bar : Show::nothing;
}

bool choose_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace headgate::loadtest
