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

// In brackets; nothing where there is no room for it.
std::string bar(double share, int width) {
  if (width < 4) return {};
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * width + 0.5);
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '.') + "]";
}

int columns_of(const std::string& words) { return static_cast<int>(words.size()); }

double share_done(const LiveView& view, const Tally& tally) {
  return view.planned == 0 ? 0 : static_cast<double>(tally.whole().ended) / static_cast<double>(view.planned);
}

std::string reasons(const std::map<std::string, std::uint64_t>& by) {
  std::string all;
  for (const auto& [reason, n] : by) all += (all.empty() ? "" : ", ") + reason + " " + std::to_string(n);
  return all.empty() ? "none" : all;
}

constexpr int wide = 80;  // columns from which on rows have all their words

std::string latency_row(const char* name, const Histogram& recent, const Histogram& whole, bool is_wide) {
  const char* format =
      is_wide ? "  %-6s p50 %9s   p99 %9s      p50 %9s   p99 %9s" : "  %-4s p50 %8s p99 %8s  p50 %8s p99 %8s";
  return text(format, name, ms(recent.quantile_us(0.5)).c_str(), ms(recent.quantile_us(0.99)).c_str(),
              ms(whole.quantile_us(0.5)).c_str(), ms(whole.quantile_us(0.99)).c_str());
}

// What goes first when there are too few lines, least first; of the events the oldest.
enum Worth : int { gap, well_backend, no_refusals, ill_backend, pool_sum, tpot, refusals, title, event };
constexpr int latency = 1 << 20, counts = latency + 1;

struct Paint {
  bool on;
  std::string operator()(const char* code, const std::string& words) const {
    return on ? "\x1b[" + std::string{code} + "m" + words + "\x1b[0m" : words;
  }
};

bool is_well(const AdminState::Backend& backend) {
  return backend.health == "up" || backend.health == "healthy" || backend.health == "ok";
}

std::string backend_row(const AdminState::Backend& backend, const Paint& paint, int columns) {
  const double busy = backend.in_flight_max == 0
                          ? 0
                          : static_cast<double>(backend.in_flight) / static_cast<double>(backend.in_flight_max);
  const std::string name = text("    %-12s ", backend.name.c_str()), health = text("%-10s", backend.health.c_str()),
                    number = text(" %llu of %llu", static_cast<unsigned long long>(backend.in_flight),
                                  static_cast<unsigned long long>(backend.in_flight_max));
  const int room = columns - columns_of(name + health + number) - 4;
  return name + paint(is_well(backend) ? "32" : "31", health) + " " + bar(busy, std::min(room, 20)) + number +
         (columns < wide ? "" : " in flight");
}

void add_pools(std::vector<Row>& rows, const AdminState& state, const Paint& paint, int columns) {
  for (const AdminState::Pool& pool : state.pools) {
    unsigned long long in_flight = 0, in_flight_max = 0, up = 0, all = 0;
    const std::size_t sum_row = rows.size();
    rows.push_back({{}, pool_sum});
    for (const AdminState::Backend& backend : state.backends) {
      if (backend.pool != pool.name) continue;
      in_flight += backend.in_flight;
      in_flight_max += backend.in_flight_max;
      up += is_well(backend) ? 1 : 0;
      ++all;
      rows.push_back({backend_row(backend, paint, columns), is_well(backend) ? well_backend : ill_backend});
    }
    rows[sum_row].text =
        text("  pool %-10s queued %llu   ", pool.name.c_str(), static_cast<unsigned long long>(pool.queued)) +
        paint(up < all ? "31" : "0", text("%llu of %llu up", up, all)) +
        text("   %llu of %llu in flight", in_flight, in_flight_max);
  }
}

}  // namespace

std::string live_screen(const LiveView& view, const Tally& tally, const AdminState& state, bool colour,
                        const ScreenSize& size) {
  const Paint paint{colour};
  const bool is_wide = size.columns >= wide;
  const Tally::Window recent = tally.recent();
  const Tally::Window& whole = tally.whole();
  const double share = whole.ended == 0 ? 1.0 : static_cast<double>(whole.good) / static_cast<double>(whole.ended);
  const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::vector<Row> rows;
  const auto add = [&rows](int worth, std::string words) { rows.push_back({std::move(words), worth}); };

  add(title, paint("1", view.title.empty() ? std::string{"headgate load"} : view.title));
  const std::string time = text("  %5.1f s of %.0f s  ", seconds(view.now), seconds(view.span));
  add(counts, time + bar(share_done(view, tally), std::min(size.columns - columns_of(time) - 3, 40)));
  add(gap, "");
  add(counts, text(is_wide ? "  requests  sent %llu of %llu   in flight %llu   ended %llu   ok %llu"
                           : "  sent %llu of %llu  in flight %llu  ended %llu  ok %llu",
                   number(view.sent), number(view.planned), number(view.active), number(whole.ended),
                   count(tally, Outcome::ok)));
  const unsigned long long failed = count(tally, Outcome::failed_before_first_token);
  const unsigned long long cut = count(tally, Outcome::cut) + count(tally, Outcome::cut_dirty);
  add(counts, (is_wide ? "            " : "  ") +
                  paint(failed ? "31" : "0", text("failed before first token %llu", failed)) + "   " +
                  paint(cut ? "33" : "0", text("cut %llu", cut)) +
                  text("   wrong count %llu", count(tally, Outcome::wrong_count)));
  add(counts,
      text(is_wide ? "  goodput   %.1f /s   %.1f %% within %s" : "  goodput %.1f /s  %.1f %% within %s",
           static_cast<double>(recent.good) / tally.recent_span_s(view.now), 100 * share, tally.limits().c_str()));
  add(tally.refused_by.empty() ? no_refusals : refusals,
      (is_wide ? "  refusals  " : "  refusals ") + reasons(tally.refused_by));
  add(gap, "");
  add(latency, is_wide ? "         last 10 s                             whole run"
                       : "       last 10 s                  whole run");
  add(latency, latency_row("TTFT", recent.ttft, whole.ttft, is_wide));
  add(tpot, latency_row("TPOT", recent.tpot, whole.tpot, is_wide));
  add(gap, "");
  add_pools(rows, state, paint, size.columns);
  int nth = event;
  for (const std::string& line : view.happened) add(std::min(nth++, latency - 1), "  " + paint("1;33", line));
  return fitted(std::move(rows), size);
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

std::string progress_bar(const LiveView& view, const Tally& tally, int columns) {
  const std::string words = text(
      "%llu of %llu, %llu in flight, %.0f s", static_cast<unsigned long long>(tally.whole().ended),
      static_cast<unsigned long long>(view.planned), static_cast<unsigned long long>(view.active), seconds(view.now));
  const std::string done = bar(share_done(view, tally), std::min(columns - columns_of(words) - 4, 40));
  return cut_to(done + (done.empty() ? "" : " ") + words, columns - 1);
}

void Live::draw(const LiveView& view, const Tally& tally, const AdminState& state) {
  if (show_ == Show::bar) {
    std::fprintf(stderr, "\r%s\x1b[K", progress_bar(view, tally, terminal_size(STDERR_FILENO).columns).c_str());
  } else if (show_ == Show::screen) {
    const ScreenSize size = terminal_size(STDOUT_FILENO);
    const bool resized = size.columns != drawn_.columns || size.rows != drawn_.rows;
    drawn_ = size;
    std::string screen = resized ? "\x1b[?7l\x1b[2J\x1b[H" : "\x1b[?7l\x1b[H";  // no wrapping meanwhile
    for (const char c : live_screen(view, tally, state, colour_, size)) {
      if (c == '\n') screen += "\x1b[K";  // what the previous screen left to the right
      screen += c;
    }
    screen += "\x1b[J\x1b[?7h";
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
