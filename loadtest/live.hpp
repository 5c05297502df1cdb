// The live summary: one screen redrawn in place on a terminal, a plain line every few seconds elsewhere, a progress bar
// where neither is wanted. The texts are made by pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loadtest/admin_poll.hpp"
#include "loadtest/fit.hpp"
#include "loadtest/tally.hpp"

namespace headgate::loadtest {

struct LiveView {
  std::string title;
  Nanos now{}, span{};  // since the start; of the arrivals
  std::uint64_t planned = 0, sent = 0, active = 0;
  std::vector<std::string> happened;  // "20.0 s  killed small/b1"
};

// The screen as lines that fit the terminal, without colour codes unless `colour`.
std::string live_screen(const LiveView& view, const Tally& tally, const AdminState& state, bool colour,
                        const ScreenSize& size);
std::string live_line(const LiveView& view, const Tally& tally);
std::string progress_bar(const LiveView& view, const Tally& tally, int columns);

enum class Show : std::uint8_t { nothing, bar, screen, lines };

// Draws on standard output (bar: on standard error), as often as its kind wants when called every 500 ms.
class Live {
 public:
  Live(Show show, bool colour) : show_(show), colour_(colour) {}
  void draw(const LiveView& view, const Tally& tally, const AdminState& state);
  void note(const std::string& happened);  // an event, at once where plain lines are shown
  void end(const LiveView& view, const Tally& tally, const AdminState& state);

 private:
  Show show_;
  bool colour_;
  ScreenSize drawn_{0, 0};  // the terminal when the screen was last drawn
  Nanos next_line_{};
};

// Bar or screen for a terminal, lines or nothing elsewhere; colour unless NO_COLOR is set or output is no terminal.
Show choose_show(bool live);
bool choose_colour();

}  // namespace headgate::loadtest
